package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// endedWhere is the filter on the history: the last runs of jobs that are done
// or cancelled.
func (s *Store) endedWhere(f jobs.Filter) (table, where string, args []any) {
	var outcomes []string
	for state, outcome := range map[jobs.State]string{jobs.StateCompleted: jobs.Completed.String(), jobs.StateCancelled: jobs.Cancelled.String()} {
		if len(f.States) == 0 || slices.Contains(f.States, state) {
			outcomes = append(outcomes, outcome)
		}
	}
	var c conditions
	// Most rows are completed, and the newest are asked for: they are found by
	// going down the numbers, not by sorting all that the index on outcome has.
	column := "outcome"
	if slices.Contains(outcomes, jobs.Completed.String()) && len(f.Kinds)+len(f.Queues)+len(f.UUIDs) == 0 && f.Since.IsZero() && f.Until.IsZero() {
		column = "COALESCE(outcome, '')"
	}
	c.in(column, outcomes)
	s.historyWhere(&c, f)
	return "cmsjobs_runs", c.String(), c.args
}

func (s *Store) historyWhere(c *conditions, f jobs.Filter) {
	c.in("kind", s.spellings(f.Kinds))
	c.in("queue", f.Queues)
	c.in("uuid", f.UUIDs)
	if f.Text != "" {
		part, args := s.like(f.Text, "data", "error")
		c.add(part, args...)
	}
	if !f.Since.IsZero() {
		c.add(fmt.Sprintf("ended_at >= %d", f.Since.UnixMilli()))
	}
	if !f.Until.IsZero() {
		c.add(fmt.Sprintf("ended_at < %d", f.Until.UnixMilli()))
	}
}

// readEnded reads the shelf of finished and cancelled jobs.
func (s *Store) readEnded(ctx context.Context, f jobs.Filter, from position64, limit int) (page, error) {
	_, where, args := s.endedWhere(f)
	rows, err := s.queryEnded(ctx, where+" AND "+from.condition("id"), args, from.order("id"), limit)
	p := page{items: rows, last: from.key, end: len(rows) < limit}
	if len(rows) > 0 {
		p.last = rows[len(rows)-1].key
	}
	return p, err
}

func (s *Store) queryEnded(ctx context.Context, where string, args []any, order string, limit int) ([]found, error) {
	runs, err := s.queryRuns(ctx, where, args, order, limit)
	rows := make([]found, len(runs))
	for i, r := range runs {
		rows[i] = found{key: r.ID, Record: jobs.Record{ID: r.JobID, UUID: r.UUID, Kind: r.Kind, Queue: r.Queue, State: jobs.StateCompleted, Attempt: r.Attempt,
			MaxAttempts: s.limitOf(r.Kind, 0, 0), Payload: r.payload, Worker: r.Worker, Error: r.Error, Result: r.Result,
			StartedAt: r.StartedAt, EndedAt: r.EndedAt, RunAt: r.StartedAt.Add(-r.Wait), Duration: r.Duration}}
		if r.Outcome == jobs.Cancelled.String() {
			rows[i].State = jobs.StateCancelled
		}
	}
	return rows, err
}

type storedRun struct {
	jobs.RunRecord
	payload []byte
}

func (s *Store) queryRuns(ctx context.Context, where string, args []any, order string, limit int) ([]storedRun, error) {
	var runs []storedRun
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var x storedRun
		var ended, duration, wait int64
		var failure, result, data sql.NullString
		if err := r.Scan(&x.ID, &x.JobID, &x.UUID, &x.Kind, &x.Queue, &x.Attempt, &x.Outcome, &x.Worker, &ended, &duration, &wait, &failure, &result, &data); err != nil {
			return err
		}
		x.StartedAt, x.EndedAt, x.Error = unixMilli(ended-duration), unixMilli(ended), failure.String
		x.Duration, x.Wait = time.Duration(duration)*time.Millisecond, time.Duration(wait)*time.Millisecond
		if result.String != "" {
			x.Result = json.RawMessage(result.String)
		}
		x.payload = keptPayload(x.Kind, data.String)
		runs = append(runs, x)
		return nil
	}, fmt.Sprintf("SELECT id, job_id, uuid, kind, queue, attempt, outcome, worker, ended_at, duration_ms, wait_ms, error, result, data FROM cmsjobs_runs WHERE %s%s LIMIT %d", where, order, limit), args...)
	if err != nil {
		return nil, fmt.Errorf("reading the history of runs: %w", err)
	}
	return runs, nil
}

// keptPayload is a payload with the data that the history kept of it; nothing
// kept means that there was none, or too much.
func keptPayload(kind, data string) []byte {
	if data == "" {
		data = "{}"
	}
	return fmt.Appendf(nil, `{"type":%q,"data":%s}`, kind, data)
}

// Runs lists runs of all outcomes, newest first. Total is −1.
func (s *Store) Runs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.RunRecord], error) {
	var c conditions
	s.historyWhere(&c, f)
	var outcomes []string
	for _, state := range f.States {
		outcomes = append(outcomes, string(state)) // a Verdict's word is the state's
	}
	c.in("outcome", outcomes)
	list := jobs.List[jobs.RunRecord]{Total: -1}
	if p.Cursor != "" {
		id, err := strconv.ParseInt(p.Cursor, 36, 64)
		if err != nil {
			return list, fmt.Errorf("%w: %q is no cursor of a list: take the one that the list gave", jobs.ErrInvalid, p.Cursor)
		}
		c.add(fmt.Sprintf("id < %d", id))
	}
	limit := pageLimit(p)
	tail := limit + 1
	order := " ORDER BY id DESC"
	offset := 0
	if p.Cursor == "" {
		offset = min(max(p.Offset, 0), maxOffset)
	}
	runs, err := s.queryRuns(ctx, c.String(), c.args, order, tail+offset)
	if err != nil {
		return list, err
	}
	runs = runs[min(offset, len(runs)):]
	for i, r := range runs {
		if i == limit {
			list.Next = strconv.FormatInt(runs[limit-1].ID, 36)
			break
		}
		list.Items = append(list.Items, r.RunRecord)
	}
	return list, nil
}

// Log returns the log lines of a job's runs, oldest first, at most limit.
func (s *Store) Log(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error) {
	if limit <= 0 {
		limit = maxLimit
	}
	var lines []jobs.LogLine
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var at int64
		var l jobs.LogLine
		err := r.Scan(&at, &l.Text)
		l.At = unixMilli(at)
		lines = append(lines, l)
		return err
	}, fmt.Sprintf("SELECT at, line FROM cmsjobs_job_logs WHERE uuid = ? ORDER BY id LIMIT %d", limit), uuid)
	if err != nil {
		return nil, fmt.Errorf("reading a job's log lines: %w", err)
	}
	return lines, nil
}

// Throughput counts ended runs in steps of equal length since a moment, oldest
// first. Steps without runs are listed with zeros.
func (s *Store) Throughput(ctx context.Context, since time.Time, step time.Duration) ([]jobs.Flow, error) {
	if step < time.Second {
		return nil, fmt.Errorf("a step of %s is too short: at least 1s", step)
	}
	var now int64
	if _, err := s.one(ctx, s.ownDB, []any{&now}, "SELECT "+s.millis()); err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	width := step.Milliseconds()
	first := since.UnixMilli() / width
	count := now/width - first + 1
	if count < 1 {
		return nil, nil
	}
	if count > 10_000 {
		return nil, fmt.Errorf("%d steps are too many: take longer ones", count)
	}
	flows := make([]jobs.Flow, count)
	for i := range flows {
		flows[i].At = unixMilli((first + int64(i)) * width)
	}
	bucket := fmt.Sprintf("(ended_at - MOD(ended_at, %d)) / %d", width, width)
	if s.d.name == "sqlite" {
		bucket = fmt.Sprintf("ended_at / %d", width)
	}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var at, done, failed, n int64
		var duration, wait float64
		if err := r.Scan(&at, &done, &failed, &n, &duration, &wait); err != nil {
			return err
		}
		if i := at - first; i >= 0 && i < count {
			flows[i].Completed, flows[i].Failed = done, failed
			flows[i].Duration, flows[i].Wait = time.Duration(duration/float64(n))*time.Millisecond, time.Duration(wait/float64(n))*time.Millisecond
		}
		return nil
	}, fmt.Sprintf(`SELECT CAST(%s AS %s) AS bucket, SUM(CASE WHEN outcome = 'completed' THEN 1 ELSE 0 END),
		SUM(CASE WHEN outcome IN ('failed','retried','crashed') THEN 1 ELSE 0 END), COUNT(*), SUM(duration_ms), SUM(wait_ms)
		FROM cmsjobs_runs WHERE ended_at >= %d GROUP BY 1`, bucket, s.wholeNumber(), first*width))
	if err != nil {
		return nil, fmt.Errorf("counting runs over time: %w", err)
	}
	return flows, nil
}

// wholeNumber is the type of a large integer in a CAST.
func (s *Store) wholeNumber() string {
	if s.d.name == "mysql" {
		return "SIGNED"
	}
	return "BIGINT"
}
