package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// runColumns are those of cmsjobs_runs in the order of runValues. ended_at is
// by the database's clock; the run started duration_ms before it.
const runColumns = "job_id, uuid, kind, queue, attempt, outcome, worker, lease, ended_at, duration_ms, wait_ms, error, result, data"

// runsHint names the index of the history that serves a list by outcome, kind,
// queue or uuid, newest first. Without it MariaDB sorts half of a million rows
// (1 s instead of 2 ms, measured), and SQLite may take the wrong one.
func (s *Store) runsHint(column string) string {
	switch s.d.name {
	case "mysql":
		return " FORCE INDEX (cmsjobs_runs_" + column + ")"
	case "sqlite":
		return " INDEXED BY cmsjobs_runs_" + column
	}
	return ""
}

// maxResult is how large a stored result may be.
const maxResult = 256 << 10

// runRow is one line of the history.
type runRow struct {
	job            jobs.Job
	outcome        string
	worker         string
	lease          string
	duration, wait time.Duration
	err            string
	result         json.RawMessage
	data           json.RawMessage
}

// recordRuns writes one row of history for each run and for each twin.
func (s *Store) recordRuns(ctx context.Context, q Tx, ends []ending) error {
	rows := make([]runRow, 0, len(ends))
	for _, e := range ends {
		lead := runOf(e)
		rows = append(rows, lead)
		if !e.gone() {
			continue
		}
		for _, twin := range e.Claimed.Twins {
			job := e.Claimed.Job
			job.ID, job.UUID, job.Attempt = twin.ID, twinUUID(twin), twin.Attempt
			result := json.RawMessage(fmt.Sprintf(`{"doneBy":%q}`, e.Claimed.Job.UUID))
			rows = append(rows, runRow{job: job, outcome: lead.outcome, worker: e.Worker, lease: randomPart(tokenOf(twin)), wait: e.Wait, err: firstLine(e.Error), result: result})
		}
	}
	return s.insertRuns(ctx, q, rows)
}

// runOf is the line of a run, without its twins.
func runOf(e ending) runRow {
	r := runRow{job: e.Claimed.Job, outcome: e.Verdict.String(), worker: e.Worker, lease: randomPart(tokenOf(e.Claimed.Lease)),
		duration: e.Duration, wait: e.Wait, err: e.Error, result: e.Result}
	if e.gone() {
		r.data = e.Claimed.Job.Data
	}
	return r
}

// insertRuns writes rows in as few statements as their size allows.
func (s *Store) insertRuns(ctx context.Context, q Tx, rows []runRow) error {
	if len(rows) == 0 {
		return nil
	}
	now := s.millis()
	if len(rows) > 3 { // read once: the server would reckon it anew for each value
		var read int64
		if _, err := s.one(ctx, q, []any{&read}, "SELECT "+now); err != nil {
			return fmt.Errorf("writing the history of runs: %w", err)
		}
		now = strconv.FormatInt(read, 10)
	}
	for len(rows) > 0 {
		batch, size := []runLine{}, 0
		for len(rows) > 0 && len(batch) < 1000 && len(batch)*9+9 <= s.d.maxParams && (size < s.maxBytes/2 || len(batch) == 0) {
			l := s.lineOf(rows[0])
			batch, size, rows = append(batch, l), size+l.size(), rows[1:]
		}
		statement, args := s.insertion(batch, now)
		if _, err := s.exec(ctx, q, statement, args...); err != nil {
			return fmt.Errorf("writing the history of runs: %w", err)
		}
	}
	return nil
}

// runLine is a runRow as its columns hold it.
type runLine struct {
	job, attempt, duration, wait              int64
	uuid, kind, queue, outcome, worker, lease string
	failure, result, data                     *string
}

func (s *Store) lineOf(r runRow) runLine {
	l := runLine{job: r.job.ID, attempt: int64(r.job.Attempt), duration: max(r.duration.Milliseconds(), 0), wait: max(r.wait.Milliseconds(), 0),
		uuid: r.job.UUID, kind: r.job.Kind, queue: bound(r.job.Queue), outcome: r.outcome, worker: bound(r.worker), lease: r.lease}
	if r.err != "" {
		text := cut(r.err)
		l.failure = &text
	}
	if len(r.result) > maxResult {
		r.result = json.RawMessage(fmt.Sprintf(`{"omitted":"the result had %d bytes, %d are kept"}`, len(r.result), maxResult))
	}
	if len(r.result) > 0 {
		text := strings.ReplaceAll(string(r.result), "\x00", "")
		l.result = &text
	}
	if len(r.data) <= s.o.KeepData && utf8.Valid(r.data) && string(r.data) != "{}" && len(r.data) > 0 {
		text := string(r.data)
		l.data = &text
	}
	return l
}

// size is about how many bytes the line is in a statement.
func (l runLine) size() int {
	n := 300
	for _, text := range []*string{l.failure, l.result, l.data} {
		if text != nil {
			n += len(*text)
		}
	}
	return n
}

// values is the line's VALUES and their arguments. now is SQL.
func (l runLine) values(now string) (string, []any) {
	args := []any{l.uuid, l.kind, l.queue, l.outcome, l.worker, l.lease, nil, nil, nil}
	for i, text := range []*string{l.failure, l.result, l.data} {
		if text != nil {
			args[6+i] = *text
		}
	}
	return fmt.Sprintf("%d,?,?,?,%d,?,?,?,%s,%d,%d,?,?,?", l.job, l.attempt, now, l.duration, l.wait), args
}

// insertion is the INSERT of many lines. PostgreSQL gets arrays: reading ten
// thousand parameters costs it more than writing the rows.
func (s *Store) insertion(lines []runLine, now string) (string, []any) {
	into := "INSERT INTO cmsjobs_runs (" + runColumns + ") "
	if s.d.name != "postgres" {
		values, args := make([]string, len(lines)), make([]any, 0, 9*len(lines))
		for i, l := range lines {
			v, a := l.values(now)
			values[i], args = "("+v+")", append(args, a...)
		}
		return into + "VALUES " + strings.Join(values, ","), args
	}
	return into + "SELECT j, u, k, q, a, o, w, l, " + now + ", d, p, e, r, x FROM unnest(" +
			"CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[]), " +
			"CAST(? AS bigint[]), CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[])) AS t (j, u, k, q, a, o, w, l, d, p, e, r, x)",
		[]any{gather(lines, func(l runLine) int64 { return l.job }), gather(lines, func(l runLine) string { return l.uuid }),
			gather(lines, func(l runLine) string { return l.kind }), gather(lines, func(l runLine) string { return l.queue }),
			gather(lines, func(l runLine) int64 { return l.attempt }), gather(lines, func(l runLine) string { return l.outcome }),
			gather(lines, func(l runLine) string { return l.worker }), gather(lines, func(l runLine) string { return l.lease }),
			gather(lines, func(l runLine) int64 { return l.duration }), gather(lines, func(l runLine) int64 { return l.wait }),
			gather(lines, func(l runLine) *string { return l.failure }), gather(lines, func(l runLine) *string { return l.result }),
			gather(lines, func(l runLine) *string { return l.data })}
}

// gather lists one value of each line.
func gather[T any](lines []runLine, of func(runLine) T) []T {
	list := make([]T, len(lines))
	for i, l := range lines {
		list[i] = of(l)
	}
	return list
}

// bound cuts a word to what our columns hold.
func bound(word string) string {
	for i := range word {
		if i >= 188 {
			return word[:i]
		}
	}
	return word
}

// recordCrashes writes a line for each earlier run that ended without a word,
// naming the worker where it is known.
func (s *Store) recordCrashes(ctx context.Context, t tx, rows []candidate) error {
	var crashed []runRow
	for _, x := range rows {
		if !x.rescued || x.attempts == 0 {
			continue
		}
		worker, err := s.lastHolder(ctx, t.own, x)
		if err != nil {
			return err
		}
		job := x.job
		job.Attempt = x.attempts
		message := "the run ended without a word: its worker died, was cut off or was paused beyond its lease"
		if worker != "" {
			message += " (" + worker + ")"
		}
		crashed = append(crashed, runRow{job: job, outcome: "crashed", worker: worker, lease: "", err: message})
	}
	return s.insertRuns(ctx, t.own, crashed)
}

// lastHolder is the worker that held a rescued job, "" where nobody noted it.
func (s *Store) lastHolder(ctx context.Context, q Tx, x candidate) (string, error) {
	if x.token.Valid {
		return holder(x.token.String), nil
	}
	worker := ""
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var id, running string
		if err := r.Scan(&id, &running); err != nil {
			return err
		}
		var held []jobs.RunningJob
		if json.Unmarshal([]byte(running), &held) == nil && slices.ContainsFunc(held, func(j jobs.RunningJob) bool { return j.ID == x.id && j.Attempt == x.attempts }) {
			worker = id
		}
		return nil
	}, "SELECT id, running FROM cmsjobs_workers WHERE running LIKE ?", fmt.Sprintf(`%%"id":%d,%%`, x.id))
	if err != nil {
		return "", fmt.Errorf("asking who held job %d: %w", x.id, err)
	}
	return worker, nil
}

// storeLines keeps log lines that no heartbeat has stored.
func (s *Store) storeLines(ctx context.Context, q Tx, ends []ending) error {
	var lines []jobLine
	for _, e := range ends {
		for _, l := range e.Lines {
			lines = append(lines, jobLine{e.Claimed.Job.UUID, e.Claimed.Job.Attempt, l})
		}
	}
	return s.insertLines(ctx, q, lines)
}

type jobLine struct {
	uuid    string
	attempt int
	jobs.LogLine
}

func (s *Store) insertLines(ctx context.Context, q Tx, lines []jobLine) error {
	for chunk := range slices.Chunk(lines, 200) {
		var args []any
		for _, l := range chunk {
			args = append(args, l.uuid, l.attempt, l.At.UnixMilli(), cut(l.Text))
		}
		if _, err := s.exec(ctx, q, "INSERT INTO cmsjobs_job_logs (uuid, attempt, at, line) VALUES "+strings.TrimSuffix(strings.Repeat("(?,?,?,?),", len(chunk)), ","), args...); err != nil {
			return fmt.Errorf("writing jobs' log lines: %w", err)
		}
	}
	return nil
}
