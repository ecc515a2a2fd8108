package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
)

// endedWhere is the filter on the history: the last runs of jobs that are done
// or cancelled.
func (s *Store) endedWhere(f jobs.Filter) (table, where string, args []any) {
	var c conditions
	c.in("outcome", endedOutcomes(f))
	s.historyWhere(&c, f)
	return "cmsjobs_runs", c.String(), c.args
}

// endedOutcomes are those of the filter's statuses that are in the history.
func endedOutcomes(f jobs.Filter) []string {
	var list []string
	for _, x := range []struct {
		state   jobs.Status
		outcome jobs.Outcome
	}{{jobs.StatusCompleted, jobs.Completed}, {jobs.StatusCancelled, jobs.Cancelled}} {
		if len(f.Statuses) == 0 || slices.Contains(f.Statuses, x.state) {
			list = append(list, x.outcome.String())
		}
	}
	return list
}

func (s *Store) historyWhere(c *conditions, f jobs.Filter) {
	c.in("type", s.spellings(f.Types))
	c.notIn("type", f.Silenced)
	c.in("queue", f.Queues)
	c.in("uuid", f.UUIDs)
	if f.Text != "" {
		part, args := s.like(f.Text, "data", "error")
		c.add(part, args...)
	}
	s.ranBy(c, f)
	if !f.Since.IsZero() {
		c.add(fmt.Sprintf("ended_at >= %d", f.Since.UnixMilli()))
	}
	if !f.Until.IsZero() {
		c.add(fmt.Sprintf("ended_at < %d", f.Until.UnixMilli()))
	}
}

// readEnded reads completed and cancelled jobs.
func (s *Store) readEnded(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) (page, error) {
	stretch, err := s.findRuns(ctx, f, endedOutcomes(f), from, limit)
	if err != nil {
		return page{}, err
	}
	runs, err := s.runsAt(ctx, stretch.runCursors)
	return page{items: each(runs, s.endedRecord), last: stretch.last, end: stretch.end}, err
}

// queryEnded reads single rows of the history as records.
func (s *Store) queryEnded(ctx context.Context, where string, order string, limit int) ([]record, error) {
	runs, err := s.queryRuns(ctx, where, nil, order, limit)
	return each(runs, s.endedRecord), err
}

func (s *Store) endedRecord(r storedRun) record {
	x := record{key: r.ID, ended: r.EndedAt.UnixMilli(), Record: jobs.Record{ID: r.JobID, UUID: r.UUID, Type: r.Type,
		Queue: r.Queue, Status: jobs.StatusCompleted, Foreign: r.foreign, Attempt: r.Attempt,
		MaxAttempts: s.limitOf(r.Type, 0, 0), Payload: r.payload, PayloadOmitted: r.omitted, Worker: r.Worker,
		Error: r.Error, Result: r.Result, EnqueuedAt: r.created, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		RunAt: r.due, Duration: r.Duration}}
	if r.Outcome == jobs.Cancelled.String() {
		x.Status = jobs.StatusCancelled
	}
	return x
}

type storedRun struct {
	jobs.RunRecord
	payload []byte
	omitted bool // the payload is not kept
	foreign bool // PHP's own
	created time.Time
	due     time.Time
}

func (s *Store) queryRuns(ctx context.Context, where string, args []any, order string, limit int) ([]storedRun, error) {
	var runs []storedRun
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var x storedRun
		var ended, duration, wait, created int64
		var failure, result, data, metadata sql.NullString
		if err := r.Scan(&x.ID, &x.JobID, &x.UUID, &x.Type, &x.Queue, &x.Attempt, &x.Outcome, &x.Worker, &ended,
			&duration, &wait, &created, &failure, &result, &data, &metadata); err != nil {
			return err
		}
		x.StartedAt, x.EndedAt, x.Error = tables.UnixMilli(ended-duration), tables.UnixMilli(ended), failure.String
		x.Duration, x.Wait = time.Duration(duration)*time.Millisecond, time.Duration(max(wait, 0))*time.Millisecond
		x.due = tables.UnixMilli(ended - duration - wait)
		if result.String != "" {
			x.Result = json.RawMessage(result.String)
		}
		if x.foreign = metadata.String == phpjob.Mark; x.foreign {
			metadata.String = ""
		}
		x.omitted = data.Valid && data.String == tables.Omitted
		x.payload, x.created = keptPayload(x.Type, data.String, metadata.String), tables.UnixMilli(created)
		runs = append(runs, x)
		return nil
	}, fmt.Sprintf("SELECT id, job_id, uuid, type, queue, attempt, outcome, worker, ended_at, duration_ms, wait_ms, "+
		"created_at, error, result, data, metadata FROM cmsjobs_runs WHERE %s%s LIMIT %d", where, order, limit),
		args...)
	if err != nil {
		return nil, fmt.Errorf("reading the history of runs: %w", err)
	}
	return runs, nil
}

// keptPayload is a payload with the data and metadata that the history kept of
// it.
func keptPayload(kind, data, metadata string) []byte {
	if data == "" {
		data = "{}"
	}
	if metadata != "" {
		return fmt.Appendf(nil, `{"type":%q,"data":%s,"metadata":%s}`, kind, data, metadata)
	}
	return fmt.Appendf(nil, `{"type":%q,"data":%s}`, kind, data)
}

// Runs lists runs of all outcomes, newest first. Total is −1 in a
// large history that is filtered by more than outcomes.
func (s *Store) Runs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.RunRecord], error) {
	list := jobs.List[jobs.RunRecord]{Total: -1}
	at, err := parseCursor(p.Cursor)
	if err != nil {
		return list, err
	}
	wanted := outcomes
	if len(f.Statuses) > 0 {
		// an outcome and its status have the same name
		wanted = each(f.Statuses, func(x jobs.Status) string { return string(x) })
	}
	if len(f.Outcomes) > 0 {
		wanted = f.Outcomes
	}
	limit, skip := pageLimit(p), 0
	if p.Cursor == "" {
		skip = min(max(p.Offset, 0), maxOffset)
	}
	if !p.Uncounted {
		if list.Total, err = s.totalRuns(ctx, f, wanted); err != nil {
			return list, err
		}
	}
	stretch, err := s.findRuns(ctx, f, wanted, at.of("r"), skip+limit)
	if err != nil {
		return list, err
	}
	runs, err := s.runsAt(ctx, stretch.runCursors[min(skip, len(stretch.runCursors)):])
	list.Items = each(runs, func(r storedRun) jobs.RunRecord { return r.RunRecord })
	if !stretch.end {
		at.put("r", stretch.last)
		list.Next = at.String()
	}
	return list, err
}

// totalRuns counts runs that ended in the wanted outcomes.
func (s *Store) totalRuns(ctx context.Context, f jobs.Filter, wanted []string) (n int64, err error) {
	f.Statuses = nil
	if !countable(f) || len(f.Queues) > 0 || !f.Since.IsZero() || !f.Until.IsZero() {
		var c conditions
		c.in("outcome", wanted)
		s.historyWhere(&c, f)
		return listing.Total(ctx, s.tables.OwnDB, "cmsjobs_runs", c.String(), c.args...)
	}
	counted, err := s.tallies(ctx)
	for _, outcome := range wanted {
		n += counted[outcome].count
	}
	return n, err
}

// Log returns the log lines of a job's runs, oldest first, at most limit.
func (s *Store) Log(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error) {
	if limit <= 0 {
		limit = maxLimit
	}
	var lines []jobs.LogLine
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var at int64
		var l jobs.LogLine
		err := r.Scan(&at, &l.Text)
		l.At = tables.UnixMilli(at)
		lines = append(lines, l)
		return err
	}, fmt.Sprintf("SELECT at, line FROM cmsjobs_job_logs WHERE uuid = ? ORDER BY id LIMIT %d", limit), uuid)
	if err != nil {
		return nil, fmt.Errorf("reading a job's log lines: %w", err)
	}
	return lines, nil
}

// runsAt reads the runs of spots, in their order; one that was deleted in the
// meantime is left out.
func (s *Store) runsAt(ctx context.Context, runCursors []runCursor) ([]storedRun, error) {
	if len(runCursors) == 0 {
		return nil, nil
	}
	in, args := s.tables.Dialect.In("id", each(runCursors, func(x runCursor) int64 { return x.id }))
	return s.queryRuns(ctx, in, args, " ORDER BY ended_at DESC, id DESC", len(runCursors))
}
