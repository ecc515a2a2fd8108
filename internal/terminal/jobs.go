package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// looks are the colours of statuses.
var looks = map[string]colour{"completed": green, "failed": red, "processing": blue, "retrying": yellow,
	"stalled": yellow, "paused": yellow}

// Newest is a frame of the newest jobs.
func Newest(list []ops.JobView, v View) string {
	c := &canvas{View: v}
	c.line(headline("cmsjobs jobs watch", "", v))
	var rows [][]cell
	for _, j := range list {
		rows = append(rows, []cell{{id(j), plain}, {j.Type, bold}, {j.Queue, plain}, {status(j), look(j)},
			{attempt(j), plain}, {display.Ago(moment(j), v.Now), plain}, {took(j, v.Now), plain}, {said(j), faint}})
	}
	c.blocks([]block{{heading: "Newest jobs", heads: true, empty: "No jobs.", lines: table([]column{
		{head: "ID", right: true, most: 14}, {head: "TYPE", most: 30}, {head: "QUEUE", most: 16}, {head: "STATUS"},
		{head: "TRY", right: true}, {head: "WHEN", right: true}, {head: "TOOK", right: true},
		{head: "SAYS"}}, rows)}}, 2)
	c.foot()
	return c.String()
}

// NewestLines are the jobs that are new or changed since the last time, oldest first.
func NewestLines(list []ops.JobView, before *[]ops.JobView) (lines []string) {
	known := map[string]string{}
	if before != nil {
		for _, j := range *before {
			known[key(j)] = stage(j)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if j := list[i]; known[key(j)] != stage(j) {
			lines = append(lines, jobLine(j))
		}
	}
	return lines
}

// key tells jobs apart: the number of a row without UUID is that of its table.
func key(j ops.JobView) string { return j.ID + " " + j.EnqueuedAt.Format(time.RFC3339Nano) }

// stage changes whenever a job gets further.
func stage(j ops.JobView) string { return j.Status + j.Detail + strconv.Itoa(j.Attempts) + progress(j) }

func jobLine(j ops.JobView) string {
	c := &canvas{View: View{Width: 400}}
	l := text(moment(j).UTC().Format(time.TimeOnly) + "  " + id(j) + "  " + j.Type + "  " + status(j))
	if t := took(j, j.EndedAt); t != "" {
		l = l.add(plain, "  "+t)
	}
	if s := said(j); s != "" {
		l = l.add(plain, "  "+s)
	}
	return c.written(l)
}

// OneJob is a frame of a job and the newest lines of its log.
func OneJob(f JobFigures, v View) string {
	c := &canvas{View: v}
	j := f.Job
	c.line(headline("cmsjobs jobs watch", id(j), v))
	c.line(painted(bold, j.Type).add(plain, " in "+j.Queue+"  ").add(look(j), status(j)).add(faint, "  attempt "+
		attempt(j)))
	if j.Status == "processing" {
		c.line(text(meter(j.Progress, 40)+" "+progress(j)).add(faint, " for "+since(j.StartedAt, v.Now)))
	}
	if j.Error != "" {
		c.line(painted(red, j.Error))
	}
	if len(j.Result) > 0 {
		c.line(painted(faint, "result "+string(j.Result)))
	}
	lines := f.Lines
	if free := max(v.Height-len(c.rows)-4, 1); len(lines) > free {
		lines = lines[len(lines)-free:]
	}
	var rows []line
	for _, l := range lines {
		rows = append(rows, painted(faint, l.At.UTC().Format(time.TimeOnly)+"  ").add(plain, l.Text))
	}
	c.blocks([]block{{heading: "Log", lines: rows, empty: "No lines."}}, 2)
	c.foot()
	return c.String()
}

// OneJobLines are what is new of a job: a line of its log, another status.
func OneJobLines(f JobFigures, before *JobFigures) (lines []string) {
	var seen []jobs.LogLine
	was := ""
	if before != nil {
		seen, was = before.Lines, stage(before.Job)
	}
	for _, l := range newer(f.Lines, seen) {
		lines = append(lines, LogLine(l))
	}
	if stage(f.Job) != was {
		lines = append(lines, jobLine(f.Job))
	}
	return lines
}

// LogLines are the lines of a job's log that are new.
func LogLines(f JobFigures, before *JobFigures) (lines []string) {
	var seen []jobs.LogLine
	if before != nil {
		seen = before.Lines
	}
	for _, l := range newer(f.Lines, seen) {
		lines = append(lines, LogLine(l))
	}
	return lines
}

// newer are the lines behind those that were seen. A log that lost its oldest lines
// goes on after the last one seen.
func newer(lines, seen []jobs.LogLine) []jobs.LogLine {
	if len(seen) == 0 {
		return lines
	}
	last, same := seen[len(seen)-1], 0
	for _, l := range seen {
		if l.At.Equal(last.At) && l.Text == last.Text {
			same++
		}
	}
	for i, l := range lines {
		if l.At.Equal(last.At) && l.Text == last.Text {
			if same--; same == 0 {
				return lines[i+1:]
			}
		}
	}
	return lines
}

// LogLine is a line of a log as it is printed.
func LogLine(l jobs.LogLine) string { return l.At.UTC().Format(time.TimeOnly) + "  " + clean(l.Text) }

func id(j ops.JobView) string {
	if len(j.ID) == 36 {
		return j.ID[:13] // what tells jobs of one second apart
	}
	return j.ID
}

func status(j ops.JobView) string {
	if j.Detail == "" {
		return j.Status
	}
	return j.Status + " (" + j.Detail + ")"
}

func look(j ops.JobView) colour {
	if c, known := looks[j.Detail]; known {
		return c
	}
	return looks[j.Status]
}

func attempt(j ops.JobView) string {
	if j.MaxAttempts <= 0 {
		return strconv.Itoa(j.Attempts)
	}
	return fmt.Sprintf("%d/%d", j.Attempts, j.MaxAttempts)
}

// said is what a job leaves: its error, or how far it is.
func said(j ops.JobView) string {
	if j.Error != "" && j.Status != "completed" {
		return j.Error
	}
	return progress(j)
}

// moment is the last one of a job that is known.
func moment(j ops.JobView) time.Time {
	for _, t := range []time.Time{j.EndedAt, j.StartedAt, j.EnqueuedAt} {
		if !t.IsZero() {
			return t
		}
	}
	return j.RunAt
}

func took(j ops.JobView, now time.Time) string {
	switch {
	case j.DurationMS > 0 || !j.EndedAt.IsZero():
		return display.Span(milliseconds(j.DurationMS))
	case j.Status == "processing":
		return since(j.StartedAt, now)
	}
	return ""
}

func since(t, now time.Time) string {
	if t.IsZero() || now.IsZero() {
		return "–"
	}
	return display.Span(max(now.Sub(t), 0))
}

func progress(j ops.JobView) string {
	p := j.Progress
	if p == nil || p.Done == 0 && p.Total == 0 && p.Note == "" || j.Status != "processing" {
		return ""
	}
	out := count(p.Done)
	if p.Total > 0 {
		out = fmt.Sprintf("%d %% (%s of %s)", min(100*p.Done/p.Total, 100), count(p.Done), count(p.Total))
	}
	return strings.TrimSpace(out + " " + p.Note)
}

// meter is a bar as long as a share of the whole; without a whole it is empty.
func meter(p *jobs.Progress, width int) string {
	full := 0
	if p != nil && p.Total > 0 {
		full = int(min(max(p.Done, 0), p.Total) * int64(width) / p.Total)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// count is a number with commas: 12,345.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
