package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// runColumns are those of cmsjobs_runs that every line has, textColumns those
// that few have. ended_at is
// by the database's clock; the run started duration_ms before it.
const runColumns = "job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, duration_ms, wait_ms, " +
	"created_at"

var textColumns = [4]string{"error", "result", "data", "metadata"}

// maxResult is how large a stored result may be.
const maxResult = 256 << 10

// maxMetadata is how large kept metadata may be; more is left out.
const maxMetadata = 16 << 10

// Omitted stands in the history for data that is not kept; no data at all is NULL.
const Omitted = ""

// Run is one line of the history.
type Run struct {
	Job            jobs.Job
	Outcome        string
	Worker         string
	Lease          string
	Duration, Wait time.Duration // wait is negative where a job was cancelled before it was due
	Error          string
	Result         json.RawMessage
	Data           json.RawMessage
	// Withheld says that Data is not for the history: it keeps only that there was some.
	Withheld bool
}

// RunRow is a Run as its columns hold it.
type RunRow struct {
	job, attempt, duration, wait, created        int64
	uuid, jobType, queue, outcome, worker, lease string
	texts                                        [4]*string // as textColumns
}

// Keeps says whether the history keeps data and metadata of a job whole.
func (s *Tables) Keeps(data, metadata []byte) bool {
	return s.keepsData(data) && len(metadata) <= maxMetadata && utf8.Valid(metadata)
}

func (s *Tables) keepsData(data []byte) bool {
	return len(data) <= s.Options.KeepData && utf8.Valid(data)
}

func (s *Tables) RowOf(r *Run) RunRow {
	l := RunRow{job: r.Job.ID, attempt: int64(r.Job.Attempt), duration: max(r.Duration.Milliseconds(), 0),
		wait: r.Wait.Milliseconds(), created: max(r.Job.EnqueuedAt.UnixMilli(), 0),
		uuid: r.Job.UUID, jobType: r.Job.Type, queue: CutWord(r.Job.Queue), outcome: r.Outcome,
		worker: CutWord(r.Worker), lease: r.Lease}
	if r.Outcome != jobs.Cancelled.String() {
		l.wait = max(l.wait, 0)
	}
	if r.Error != "" {
		text := CutText(r.Error)
		l.texts[0] = &text
	}
	if text := ValidText(string(r.Result)); len(text) > maxResult {
		text = fmt.Sprintf(`{"omitted":"the result had %d bytes, %d are kept"}`, len(text), maxResult)
		l.texts[1] = &text
	} else if text != "" {
		l.texts[1] = &text
	}
	switch {
	case r.Withheld, !s.keepsData(r.Data):
		omitted := Omitted
		l.texts[2] = &omitted
	case len(r.Data) > 0 && string(r.Data) != "{}":
		text := string(r.Data)
		l.texts[2] = &text
	}
	if m := r.Job.Metadata; len(m) > len("{}") && len(m) <= maxMetadata && utf8.Valid(m) {
		text := string(m)
		l.texts[3] = &text
	}
	return l
}

// size is about how many bytes the line is in a statement.
func (l RunRow) size() int {
	n := 300
	for _, text := range l.texts {
		if text != nil {
			n += len(*text) + 2*strings.Count(*text, `"`) + 2*strings.Count(*text, `\`) // escaped twice
		}
	}
	return n
}

// InsertRuns writes rows in as few statements as their size allows.
func (s *Tables) InsertRuns(ctx context.Context, q Tx, rows []Run) error {
	lines := make([]RunRow, len(rows))
	for i := range rows {
		lines[i] = s.RowOf(&rows[i])
	}
	return s.InsertRunRows(ctx, q, lines)
}

func (s *Tables) InsertRunRows(ctx context.Context, q Tx, lines []RunRow) error {
	if len(lines) == 0 {
		return nil
	}
	now := s.MillisNow()
	if len(lines) > 3 { // read once: the server would compute it again for each value
		var read int64
		if _, err := s.QueryRow(ctx, q, []any{&read}, "SELECT "+now); err != nil {
			return fmt.Errorf("writing the history of runs: %w", err)
		}
		now = strconv.FormatInt(read, 10)
	}
	for len(lines) > 0 {
		n := s.Fitting(lines)
		for _, x := range s.insertions(lines[:n], now) {
			if _, err := s.Exec(ctx, q, x.statement, x.args...); err != nil {
				return fmt.Errorf("writing the history of runs: %w", err)
			}
		}
		lines = lines[n:]
	}
	return nil
}

// Fitting is how many of the lines one statement takes, 1 at least.
func (s *Tables) Fitting(lines []RunRow) int {
	n, size := 0, 0
	for n < len(lines) && n < 1000 && n*11+11 <= s.Dialect.MaxParams {
		if size += lines[n].size(); size > s.MaxBytes/2 && n > 0 {
			break
		}
		n++
	}
	return n
}

// insertion is the INSERT of many lines. now is SQL.
func (s *Tables) insertion(lines []RunRow, now string) runInsert {
	if s.Dialect.Arrays {
		statement, args := ArrayInsertion(lines, now, "")
		return runInsert{statement, args}
	}
	var b strings.Builder
	b.Grow(200 + 64*len(lines))
	args := make([]any, 0, 11*len(lines))
	b.WriteString("INSERT INTO cmsjobs_runs (" + runColumns)
	texts := textsOf(lines)
	for _, i := range texts {
		b.WriteString(", " + textColumns[i])
	}
	b.WriteString(") VALUES ")
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if s.Dialect.KeepsStatements() {
		number = func(n int64) string { args = append(args, n); return "?" }
	}
	for i := range lines {
		l := &lines[i]
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("(" + number(l.job) + ",?,?,?,")
		args = append(args, l.uuid, l.jobType, l.queue)
		b.WriteString(number(l.attempt) + ",?,?,?," + now + ",")
		args = append(args, l.outcome, l.worker, l.lease)
		b.WriteString(number(l.duration) + "," + number(l.wait) + "," + number(l.created))
		for _, k := range texts {
			b.WriteString(",?")
			args = append(args, l.text(k))
		}
		b.WriteByte(')')
	}
	return runInsert{b.String(), args}
}

// textsOf says which of the textColumns any of the lines has. Most have none,
// and a value that is not written costs nothing.
func textsOf(lines []RunRow) (which []int) {
	for k := range textColumns {
		for i := range lines {
			if lines[i].texts[k] != nil {
				which = append(which, k)
				break
			}
		}
	}
	return which
}

func (l *RunRow) text(k int) any {
	if l.texts[k] == nil {
		return nil
	}
	return *l.texts[k]
}

// EndedWithoutResult is what the history says of a run that another claim ended.
const EndedWithoutResult = "the run ended without a result: its worker died, was cut off or was paused beyond its lease"

// JobLine is a line that a job's run logged.
type JobLine struct {
	UUID    string
	Attempt int
	jobs.LogLine
}

// InsertLines writes log lines in as few statements as their number allows.
func (s *Tables) InsertLines(ctx context.Context, q Tx, lines []JobLine) error {
	for chunk := range slices.Chunk(lines, 200) {
		var args []any
		for _, l := range chunk {
			args = append(args, l.UUID, l.Attempt, l.At.UnixMilli(), CutText(l.Text))
		}
		if _, err := s.Exec(ctx, q, "INSERT INTO cmsjobs_job_logs (uuid, attempt, at, line) VALUES "+
			database.Rows("(?,?,?,?)", len(chunk)), args...); err != nil {
			return fmt.Errorf("writing jobs' log lines: %w", err)
		}
	}
	return nil
}
