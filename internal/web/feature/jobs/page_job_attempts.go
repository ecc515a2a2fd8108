package jobs

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// attemptRow is one start of a job: what it waited, how it ran, and what it waited
// for the next one. Times are zero where there is none.
type attemptRow struct {
	Number             int
	Due, Start, End    time.Time // End is now while it runs
	Next               time.Time // when the next start is due
	Class              string    // ok, warn, bad, busy, idle
	Sentence, Last     string    // Last ends the sentence, in the outcome's colour
	Outcome, Worker    string
	Error              string
	Trace              ops.Trace
	Running, SameError bool
}

// shownAttempts bounds the chart.
const shownAttempts = 20

// attemptClass is the colour of an outcome.
func attemptClass(outcome string) string {
	switch outcome {
	case "completed":
		return "ok"
	case "failed", "crashed":
		return "bad"
	case "retried", "released":
		return "warn"
	}
	return "idle"
}

// attempts are the starts of a job, oldest first, from its runs, newest first.
func attempts(lang locale.Printer, job ops.JobView, runs []ops.RunView, now time.Time) []attemptRow {
	runs = runs[:min(len(runs), shownAttempts)]
	rows := make([]attemptRow, 0, len(runs)+1)
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if r.Outcome == "cancelled" && r.DurationMS == 0 {
			continue // it never started
		}
		rows = append(rows, attemptRow{Number: r.Attempt, Start: r.StartedAt, End: r.EndedAt, Worker: r.Worker,
			Due: r.StartedAt.Add(-time.Duration(r.WaitMS) * time.Millisecond), Class: attemptClass(r.Outcome),
			Outcome: r.Outcome, Error: r.Error, Trace: r.Trace(), Last: lang.Name("outcome.", r.Outcome)})
	}
	if job.Status == "processing" && !job.StartedAt.IsZero() {
		rows = append(rows, attemptRow{Number: job.Attempts, Due: job.StartedAt, Start: job.StartedAt, End: now,
			Class: "busy", Running: true, Worker: job.Worker, Last: lang.Text("attempts.running")})
	}
	for i := range rows {
		if i+1 < len(rows) {
			rows[i].Next = rows[i+1].Due
			rows[i].SameError = rows[i].Error != "" && rows[i].Error == rows[i+1].Error
		} else if job.Status == "queued" && job.RunAt.After(rows[i].End) {
			rows[i].Next = job.RunAt
		}
		rows[i].say(lang, i == len(rows)-1 && job.Status == "failed")
	}
	return rows
}

// say writes the row as a sentence.
func (r *attemptRow) say(lang locale.Printer, final bool) {
	var parts []string
	if wait := r.Start.Sub(r.Due); wait >= time.Millisecond {
		parts = append(parts, lang.Text("job.waited", format.Duration(wait)))
	}
	parts = append(parts, lang.Text("attempts.ran", format.Duration(r.End.Sub(r.Start))))
	if pause := r.Next.Sub(r.End); !r.Next.IsZero() && pause >= time.Millisecond {
		parts = append(parts, lang.Text("attempts.backoff", format.Duration(pause)))
	}
	r.Sentence = strings.Join(parts, ", ")
	switch {
	case final:
		r.Last = lang.Text("attempts.final")
	case r.Outcome == "retried":
		r.Last = lang.Text("attempts.retried")
	}
}

// The sizes of the chart of attempts, in its own units.
const (
	ganttWidth = 780
	ganttLeft  = 88.0
	ganttSpan  = 330.0
	ganttText  = 434
	ganttRow   = 34
)

// attemptsChart draws the rows on one axis of time.
func attemptsChart(lang locale.Printer, rows []attemptRow) template.HTML {
	if len(rows) == 0 {
		return ""
	}
	from, until := rows[0].Due, rows[len(rows)-1].End
	if next := rows[len(rows)-1].Next; next.After(until) {
		until = next
	}
	span := max(until.Sub(from), time.Millisecond)
	x := func(at time.Time) float64 { return ganttLeft + ganttSpan*float64(at.Sub(from))/float64(span) }
	height := len(rows) * ganttRow
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="gantt hide-phone" viewBox="0 0 %d %d" role="img" aria-label="%s">`, ganttWidth,
		height+26, template.HTMLEscapeString(lang.Text("attempts.chart", len(rows), format.Duration(span))))
	ganttAxis(&out, from, span, height)
	for i, r := range rows {
		y := i*ganttRow + 8
		fmt.Fprintf(&out, `<text class="lab" x="0" y="%d">%s</text>`, y+14, template.HTMLEscapeString(lang.Text(
			"attempts.number", r.Number)))
		ganttBar(&out, "wait", x(r.Due), x(r.Start), y+6, 8, 0)
		if !r.Next.IsZero() {
			ganttBar(&out, "wait", x(r.End), x(r.Next), y+6, 8, 0)
		}
		ganttBar(&out, r.Class, x(r.Start), x(r.End), y, 20, 6)
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s, <tspan class="t-%s">%s</tspan></text>`, ganttText, y+14,
			template.HTMLEscapeString(r.Sentence), r.Class, template.HTMLEscapeString(r.Last))
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String())
}

func ganttBar(out *strings.Builder, class string, from, to float64, y, height int, least float64) {
	if width := max(to-from, least); width >= 0.5 {
		fmt.Fprintf(out, `<rect class="f-%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`, class, from, y, width,
			height)
	}
}

// ganttAxis draws the moments.
func ganttAxis(out *strings.Builder, from time.Time, span time.Duration, height int) {
	const ticks = 5
	form := "15:04:05"
	switch {
	case span > 48*time.Hour:
		form = "01-02 15:04"
	case span > time.Hour:
		form = "15:04"
	}
	for i := range ticks {
		at := from.Add(span * time.Duration(i) / (ticks - 1))
		x := ganttLeft + ganttSpan*float64(i)/(ticks-1)
		anchor := map[int]string{0: "start", ticks - 1: "end"}[i]
		if anchor == "" {
			anchor = "middle"
		}
		fmt.Fprintf(out, `<line class="f-grid" x1="%.1f" x2="%.1f" y1="4" y2="%d"/><text x="%.1f" y="%d" `+
			`text-anchor="%s">%s</text>`, x, x, height, x, height+18, anchor, at.UTC().Format(form))
	}
}
