package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var ms int64
	if _, err := s.one(ctx, s.ownDB, []any{&ms}, "SELECT "+s.millis()); err != nil {
		return time.Time{}, err
	}
	return unixMilli(ms), nil
}

// LastTicks implements schedule.Ticker.
func (s *Store) LastTicks(ctx context.Context) (map[string]time.Time, error) {
	last := map[string]time.Time{}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var entry string
		var tick int64
		err := r.Scan(&entry, &tick)
		last[entry] = unixMilli(tick)
		return err
	}, "SELECT entry, MAX(tick) FROM cmsjobs_ticks WHERE outcome <> 'manual' GROUP BY entry")
	if err != nil {
		return nil, fmt.Errorf("reading the last ticks: %w", err)
	}
	return last, nil
}

// errTaken ends a transaction whose tick was taken before.
var errTaken = errors.New("the tick is taken")

// TakeTick implements schedule.Ticker: the primary key (entry, tick) decides
// who wins. The tick is inserted first and the whole transaction dies with a
// duplicate, as PostgreSQL wants it.
func (s *Store) TakeTick(ctx context.Context, t jobs.TickRecord, job *jobs.New) (receipt jobs.Receipt, won bool, err error) {
	var prepared []jobs.New
	uuid := ""
	if job != nil {
		n := *job
		// The same name from whoever takes the tick: where our tables lie in
		// another database, a crash between the two commits doubles no job.
		n.UUID = DerivedUUID("tick/"+t.Entry, t.Tick.UnixMilli(), 0)
		if prepared, err = s.prepare([]jobs.New{n}); err != nil {
			return receipt, false, err
		}
		uuid = prepared[0].UUID
	}
	err = s.inTx(ctx, "taking a tick of "+t.Entry, func(x tx) error {
		_, err := s.exec(ctx, x.own, "INSERT INTO cmsjobs_ticks (entry, tick, at, uuid, outcome, note) VALUES (?,?,?,?,?,?)",
			t.Entry, t.Tick.UnixMilli(), t.At.UnixMilli(), uuid, t.Outcome, bound(t.Note))
		if duplicate(err) {
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

// Changes implements schedule.Ticker.
func (s *Store) Changes(ctx context.Context) (map[string]jobs.ScheduleEdit, error) {
	changes := map[string]jobs.ScheduleEdit{}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var name string
		var cron, data sql.NullString
		var paused sql.NullBool
		if err := r.Scan(&name, &cron, &paused, &data); err != nil {
			return err
		}
		c := jobs.ScheduleEdit{}
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
	}, "SELECT name, cron, paused, data FROM cmsjobs_schedules")
	if err != nil {
		return nil, fmt.Errorf("reading what was changed of the schedule: %w", err)
	}
	return changes, nil
}

// SaveChange implements schedule.Ticker.
func (s *Store) SaveChange(ctx context.Context, entry string, c *jobs.ScheduleEdit) error {
	if c == nil {
		_, err := s.exec(ctx, s.ownDB, "DELETE FROM cmsjobs_schedules WHERE name = ?", entry)
		if err != nil {
			return fmt.Errorf("taking %s back to the timetable: %w", entry, err)
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
	statement := s.d.upsert("cmsjobs_schedules", "name, cron, paused, data, changed_at", "(?,?,?,?,"+s.millis()+")", "name", "cron", "paused", "data", "changed_at")
	if _, err := s.exec(ctx, s.ownDB, statement, entry, cron, paused, data); err != nil {
		return fmt.Errorf("changing the schedule entry %s: %w", entry, err)
	}
	return nil
}

// Ticks lists an entry's ticks, newest first, each with the outcome of its job
// where that has ended. "" lists those of all entries.
func (s *Store) Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error) {
	limit := p.Limit
	if limit <= 0 {
		limit = 50
	}
	where, args := "1 = 1", []any(nil)
	order := "at"
	if entry != "" {
		where, args, order = "entry = ?", []any{entry}, "tick"
	}
	if before, err := strconv.ParseInt(p.Cursor, 10, 64); p.Cursor != "" {
		if err != nil {
			return jobs.List[jobs.TickRecord]{}, fmt.Errorf("the cursor is not ours: %w", jobs.ErrInvalid)
		}
		where += fmt.Sprintf(" AND %s < %d", order, before)
	}
	list := jobs.List[jobs.TickRecord]{Total: -1}
	// An inner query takes the page by its index before runs are looked up.
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var t jobs.TickRecord
		var tick, at int64
		var ended sql.NullString
		if err := r.Scan(&t.Entry, &tick, &at, &t.UUID, &t.Outcome, &t.Note, &ended); err != nil {
			return err
		}
		t.Tick, t.At = unixMilli(tick), unixMilli(at)
		if ended.Valid && t.UUID != "" {
			t.Outcome = ended.String
		}
		list.Items = append(list.Items, t)
		return nil
	}, fmt.Sprintf(`SELECT t.entry, t.tick, t.at, t.uuid, t.outcome, t.note,
		(SELECT r.outcome FROM cmsjobs_runs r WHERE r.uuid = t.uuid ORDER BY r.id DESC LIMIT 1)
		FROM (SELECT * FROM cmsjobs_ticks WHERE %s ORDER BY %s DESC LIMIT %d OFFSET %d) t ORDER BY t.%s DESC`, where, order, limit+1, max(p.Offset, 0), order), args...)
	if err != nil {
		return list, fmt.Errorf("listing ticks: %w", err)
	}
	if len(list.Items) > limit {
		list.Items = list.Items[:limit]
		last := list.Items[limit-1]
		list.Next = strconv.FormatInt(map[bool]int64{true: last.At.UnixMilli(), false: last.Tick.UnixMilli()}[entry == ""], 10)
	}
	return list, nil
}

// PruneTicks removes ticks older than that; the newest of each entry stays.
func (s *Store) PruneTicks(ctx context.Context, age time.Duration) (int64, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the database for the time: %w", err)
	}
	last, err := s.LastTicks(ctx)
	if err != nil {
		return 0, err
	}
	var total int64
	for entry, newest := range last {
		n, err := s.exec(ctx, s.ownDB, "DELETE FROM cmsjobs_ticks WHERE entry = ? AND tick < ?", entry, min(now.Add(-age).UnixMilli(), newest.UnixMilli()))
		if err != nil {
			return total, fmt.Errorf("removing old ticks of %s: %w", entry, err)
		}
		total += n
	}
	return total, nil
}
