package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// LastTicks implements schedule.Ticker.
func (s *Store) LastTicks(ctx context.Context, since time.Time) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var entry string
		var tick int64
		err := r.Scan(&entry, &tick)
		last[entry] = tables.UnixMilli(tick)
		return err
	}, "SELECT entry, MAX(tick) FROM cmsjobs_ticks WHERE at >= ? AND outcome <> 'manual' GROUP BY entry",
		since.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("reading the last ticks: %w", err)
	}
	return last, nil
}

// tickedWithin is how long a job counts as one of the schedule.
const tickedWithin = 24 * time.Hour

// Ticked says whether the schedule enqueued a job within the last day; an entry
// that was run by hand does not count.
func (s *Store) Ticked(ctx context.Context, uuid string) (bool, error) {
	var n int
	query := fmt.Sprintf(
		"SELECT COUNT(*) FROM cmsjobs_ticks WHERE at >= %s - %d AND uuid = ? AND outcome = 'enqueued'",
		s.tables.MillisNow(), tickedWithin.Milliseconds())
	if _, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&n}, query, uuid); err != nil {
		return false, fmt.Errorf("asking who enqueued the job %s: %w", uuid, err)
	}
	return n > 0, nil
}

// errTaken ends a transaction whose tick was taken before.
var errTaken = errors.New("the tick is taken")

// TakeTick implements schedule.Ticker: the primary key (entry, tick) decides
// who wins. The tick is inserted first and the whole transaction dies with a
// duplicate, as PostgreSQL wants it.
func (s *Store) TakeTick(ctx context.Context, t jobs.TickRecord, job *jobs.Spec) (receipt jobs.Receipt, won bool,
	err error) {
	var prepared []jobs.Spec
	uuid := ""
	if job != nil {
		n := *job
		// The same UUID from every process that takes the tick: where our tables lie in
		// another database, a crash between the two commits doubles no job.
		n.UUID = tables.NamedUUID(fmt.Sprintf("tick/%s/%d", t.Entry, t.Tick.UnixMilli()))
		if prepared, err = s.prepare([]jobs.Spec{n}); err != nil {
			return receipt, false, err
		}
		uuid = prepared[0].UUID
	}
	err = s.tables.InTx(ctx, "taking a tick of "+t.Entry, func(x tables.Transaction) error {
		_, err := s.tables.Exec(ctx, x.Own, "INSERT INTO cmsjobs_ticks (entry, tick, at, uuid, outcome, note) VALUES "+
			"(?,?,?,?,?,?)",
			t.Entry, t.Tick.UnixMilli(), t.At.UnixMilli(), uuid, t.Outcome, tables.CutWord(t.Note))
		if database.IsDuplicate(err) {
			return errTaken
		}
		if err != nil || job == nil {
			return err
		}
		receipts, err := s.insertAll(ctx, x, prepared)
		if err == nil {
			receipt = receipts[0]
		}
		return err
	})
	if errors.Is(err, errTaken) {
		return jobs.Receipt{}, false, nil
	}
	if err == nil && job != nil {
		s.wake(prepared)
	}
	return receipt, err == nil, err
}

// Changes implements schedule.Edits.
func (s *Store) Changes(ctx context.Context) (map[string]jobs.ScheduleEdit, error) {
	changes := map[string]jobs.ScheduleEdit{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var name string
		var cron, data sql.NullString
		var paused sql.NullBool
		var changed int64
		if err := r.Scan(&name, &cron, &paused, &data, &changed); err != nil {
			return err
		}
		c := jobs.ScheduleEdit{ChangedAt: tables.UnixMilli(changed)}
		if cron.Valid {
			c.Cron = &cron.String
		}
		if paused.Valid {
			c.Paused = &paused.Bool
		}
		if data.String != "" {
			c.Data = json.RawMessage(data.String)
		}
		changes[name] = c
		return nil
	}, "SELECT name, cron, paused, data, changed_at FROM cmsjobs_schedules")
	if err != nil {
		return nil, fmt.Errorf("reading what was changed of the schedule: %w", err)
	}
	return changes, nil
}

// SaveChange implements schedule.Edits.
func (s *Store) SaveChange(ctx context.Context, entry string, c *jobs.ScheduleEdit) error {
	if c == nil {
		_, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_schedules WHERE name = ?", entry)
		if err != nil {
			return fmt.Errorf("resetting the schedule entry %s: %w", entry, err)
		}
		return nil
	}
	var cron, paused, data any
	if c.Cron != nil {
		cron = *c.Cron
	}
	if c.Paused != nil {
		paused = map[bool]int{true: 1}[*c.Paused]
	}
	if len(c.Data) > 0 {
		data = string(c.Data)
	}
	statement := s.tables.Dialect.Upsert("cmsjobs_schedules", "name, cron, paused, data, changed_at", "(?,?,?,?,"+
		s.tables.MillisNow()+")", "name", "cron", "paused", "data", "changed_at")
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, statement, entry, cron, paused, data); err != nil {
		return fmt.Errorf("changing the schedule entry %s: %w", entry, err)
	}
	return nil
}

// Ticks lists an entry's ticks, newest first, each with the outcome of its job
// where that has ended. "" lists those of all entries.
// Total is −1 where there are many.
func (s *Store) Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error) {
	limit := p.Limit
	if limit <= 0 {
		limit = 50
	}
	where, args := "1 = 1", []any(nil)
	if entry != "" {
		where, args = "entry = ?", []any{entry}
	}
	total, err := listing.Total(ctx, s.tables.OwnDB, "cmsjobs_ticks", where, args...)
	if err != nil {
		return jobs.List[jobs.TickRecord]{}, err
	}
	if p.Cursor != "" {
		after, more, err := tickCursor(p.Cursor)
		if err != nil {
			return jobs.List[jobs.TickRecord]{}, err
		}
		where, args = where+after, append(args, more...)
	}
	const order = "at DESC, entry, tick DESC"
	list := jobs.List[jobs.TickRecord]{Total: total}
	// An inner query takes the page by its index before runs are looked up.
	err = s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var t jobs.TickRecord
		var tick, at int64
		var ended sql.NullString
		var took sql.NullInt64
		var result []byte
		if err := r.Scan(&t.Entry, &tick, &at, &t.UUID, &t.Outcome, &t.Note, &ended, &took, &result); err != nil {
			return err
		}
		t.Tick, t.At = tables.UnixMilli(tick), tables.UnixMilli(at)
		if ended.Valid && t.UUID != "" {
			t.Outcome = jobs.TickOutcome(ended.String, result)
			t.Duration = time.Duration(took.Int64) * time.Millisecond
		}
		list.Items = append(list.Items, t)
		return nil
	}, fmt.Sprintf(`SELECT t.entry, t.tick, t.at, t.uuid, t.outcome, t.note,
		(SELECT r.outcome FROM cmsjobs_runs r WHERE r.uuid = t.uuid ORDER BY r.id DESC LIMIT 1),
		(SELECT r.duration_ms FROM cmsjobs_runs r WHERE r.uuid = t.uuid ORDER BY r.id DESC LIMIT 1),
		(SELECT CASE WHEN r.result LIKE '%%"partial"%%' THEN r.result END FROM cmsjobs_runs r WHERE r.uuid = t.uuid
			ORDER BY r.id DESC LIMIT 1)
		FROM (SELECT * FROM cmsjobs_ticks WHERE %s ORDER BY %s LIMIT %d OFFSET %d) t ORDER BY %s`, where, order,
		limit+1, max(p.Offset, 0), order), args...)
	if err != nil {
		return list, fmt.Errorf("listing ticks: %w", err)
	}
	if len(list.Items) > limit {
		list.Items = list.Items[:limit]
		last := list.Items[limit-1]
		list.Next = fmt.Sprintf("%d|%d|%s", last.At.UnixMilli(), last.Tick.UnixMilli(), last.Entry)
	}
	return list, nil
}

// tickCursor reads where a page of ticks ended: many share one moment.
func tickCursor(cursor string) (where string, args []any, err error) {
	parts := strings.SplitN(cursor, "|", 3)
	if len(parts) == 3 {
		at, err1 := strconv.ParseInt(parts[0], 10, 64)
		tick, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err1 == nil && err2 == nil {
			return fmt.Sprintf(" AND (at < %d OR at = %d AND (entry > ? OR entry = ? AND tick < %d))", at, at, tick),
				[]any{parts[2], parts[2]}, nil
		}
	}
	return "", nil, fmt.Errorf("the cursor is not ours: %w", jobs.ErrInvalid)
}

// PruneTicks removes ticks older than that, which must be longer than any entry
// may be made up for. It runs every few minutes: a run has little to remove.
func (s *Store) PruneTicks(ctx context.Context, age time.Duration) (int64, error) {
	now, err := s.tables.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the database for the time: %w", err)
	}
	n, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_ticks WHERE at < ?", now.Add(-age).UnixMilli())
	if err != nil {
		return n, fmt.Errorf("removing old ticks: %w", err)
	}
	gone := "DELETE FROM cmsjobs_schedule_seen WHERE last_at < ?"
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, gone, now.Add(-age).UnixMilli()); err != nil {
		return n, fmt.Errorf("forgetting schedule entries that are gone: %w", err)
	}
	return n, nil
}
