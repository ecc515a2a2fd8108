package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ReadSchedule implements schedule.Ticker.
func (s *Store) ReadSchedule(ctx context.Context, names []string) (time.Time, map[string]jobs.ScheduleState, error) {
	now, states, err := s.readSchedule(ctx, names)
	if err != nil || len(states) == len(names) {
		return now, states, err
	}
	for _, name := range names {
		if _, known := states[name]; !known {
			insert := s.d.insertOrSkip("cmsjobs_schedules", "entry, since, last_tick, paused, cron", "(?, "+s.millis()+", 0, 0, '')", "entry")
			if _, err := s.exec(ctx, s.ownDB, insert, name); err != nil {
				return now, nil, fmt.Errorf("noting the schedule entry %q: %w", name, err)
			}
		}
	}
	return s.readSchedule(ctx, names)
}

// readSchedule reads everything in one statement, so that the clock and the
// states belong together.
func (s *Store) readSchedule(ctx context.Context, names []string) (now time.Time, states map[string]jobs.ScheduleState, err error) {
	var millis int64
	states = make(map[string]jobs.ScheduleState, len(names))
	if len(names) > 0 {
		in, args := inWords("e.entry", names)
		err = s.query(ctx, s.ownDB, func(r *sql.Rows) error {
			state, at, err := scanState(r)
			states[state.Name], millis = state, at
			return err
		}, `SELECT `+s.millis()+`, e.entry, e.since, e.last_tick, e.paused, e.cron, e.data, t.tick, t.noted_at, t.uuid, t.outcome, t.note, t.duration_ms
			FROM cmsjobs_schedules e LEFT JOIN cmsjobs_ticks t ON t.entry = e.entry
			AND t.tick = (SELECT MAX(tick) FROM cmsjobs_ticks WHERE entry = e.entry) WHERE `+in, args...)
	}
	if err == nil && millis == 0 { // no row says what time it is
		_, err = s.one(ctx, s.ownDB, []any{&millis}, "SELECT "+s.millis())
	}
	if err != nil {
		return now, nil, fmt.Errorf("reading the schedule: %w", err)
	}
	return time.UnixMilli(millis).UTC(), states, nil
}

func scanState(r *sql.Rows) (state jobs.ScheduleState, now int64, err error) {
	var since, last int64
	var paused int
	var data, uuid, outcome, note sql.NullString
	var tick, noted, duration sql.NullInt64
	if err := r.Scan(&now, &state.Name, &since, &last, &paused, &state.Cron, &data, &tick, &noted, &uuid, &outcome, &note, &duration); err != nil {
		return state, 0, err
	}
	state.Since, state.LastTick, state.Paused = time.UnixMilli(since).UTC(), time.UnixMilli(last).UTC(), paused != 0
	if data.String != "" {
		state.Data = []byte(data.String)
	}
	if tick.Valid {
		state.Last = &jobs.TickRecord{Entry: state.Name, Tick: time.UnixMilli(tick.Int64).UTC(), At: time.UnixMilli(noted.Int64).UTC(), UUID: uuid.String,
			Outcome: outcome.String, Note: note.String, Duration: time.Duration(duration.Int64) * time.Millisecond}
	}
	return state, now, nil
}

// TakeTick implements schedule.Ticker. The tick's key is inserted first: who
// comes second waits there for the first one's transaction to end, and finds
// the tick taken, or takes it because the first one died. A duplicate is passed
// over, not failed on, which would end PostgreSQL's transaction.
func (s *Store) TakeTick(ctx context.Context, t jobs.TickRecord, n jobs.New) (won bool, err error) {
	list, err := s.prepare([]jobs.New{n})
	if err != nil {
		return false, err
	}
	list[0].UUID = newUUID()
	err = s.inTx(ctx, "enqueuing the tick of "+t.Entry, func(x tx) error {
		t.UUID = list[0].UUID
		if won, err = s.insertTick(ctx, x.own, t); err != nil || !won {
			return err
		}
		if _, err := s.insertPlain(ctx, x.main, list); err != nil {
			return err
		}
		return s.moveLastTick(ctx, x.own, t)
	})
	if err != nil {
		return false, err
	}
	if won {
		s.wake(list)
	}
	return won, nil
}

func (s *Store) insertTick(ctx context.Context, q Tx, t jobs.TickRecord) (bool, error) {
	insert := s.d.insertOrSkip("cmsjobs_ticks", "entry, tick, noted_at, uuid, outcome, note, duration_ms", "(?, ?, "+s.millis()+", ?, ?, ?, 0)", "entry, tick")
	n, err := s.exec(ctx, q, insert, t.Entry, t.Tick.UnixMilli(), t.UUID, t.Outcome, t.Note)
	return n > 0, err
}

func (s *Store) moveLastTick(ctx context.Context, q Tx, t jobs.TickRecord) error {
	at := t.Tick.UnixMilli()
	_, err := s.exec(ctx, q, "UPDATE cmsjobs_schedules SET last_tick = ? WHERE entry = ? AND last_tick < ?", at, t.Entry, at)
	return err
}

// MissTicks implements schedule.Ticker. A tick that another instance took
// meanwhile stays as it is.
func (s *Store) MissTicks(ctx context.Context, ticks []jobs.TickRecord) error {
	return s.inTx(ctx, "recording missed ticks", func(x tx) error {
		for _, t := range ticks {
			if _, err := s.insertTick(ctx, x.own, t); err != nil {
				return err
			}
			if err := s.moveLastTick(ctx, x.own, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// CompletedSince implements schedule.Ticker.
func (s *Store) CompletedSince(ctx context.Context, kind string, since time.Time) (bool, error) {
	var one int
	found, err := s.one(ctx, s.ownDB, []any{&one}, "SELECT 1 FROM cmsjobs_runs WHERE kind = ? AND ended_at >= ? AND outcome = 'completed' LIMIT 1", kind, since.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("looking for a completed %s: %w", kind, err)
	}
	return found, nil
}

// RunTick implements schedule.Book: the job of an entry, apart from its ticks.
func (s *Store) RunTick(ctx context.Context, entry string, n jobs.New) (jobs.Receipt, error) {
	list, err := s.prepare([]jobs.New{n})
	if err != nil {
		return jobs.Receipt{}, err
	}
	list[0].UUID = newUUID()
	r := jobs.Receipt{UUID: list[0].UUID}
	err = s.inTx(ctx, "running the schedule entry "+entry, func(x tx) error {
		var now int64
		if _, err := s.one(ctx, x.own, []any{&now}, "SELECT "+s.millis()); err != nil {
			return err
		}
		ids, err := s.insertPlain(ctx, x.main, list)
		if err != nil {
			return err
		}
		r.ID = ids[0]
		// Two people within a millisecond: both jobs run, one line is kept.
		_, err = s.insertTick(ctx, x.own, jobs.TickRecord{Entry: entry, Tick: time.UnixMilli(now), UUID: r.UUID, Outcome: "enqueued", Note: "run by hand"})
		return err
	})
	if err == nil {
		s.wake(list)
	}
	return r, err
}

// ChangeEntry implements schedule.Book.
func (s *Store) ChangeEntry(ctx context.Context, state jobs.ScheduleState) error {
	paused := 0
	if state.Paused {
		paused = 1
	}
	_, err := s.exec(ctx, s.ownDB, "UPDATE cmsjobs_schedules SET paused = ?, cron = ?, data = ?, since = ? WHERE entry = ?",
		paused, state.Cron, sql.NullString{String: string(state.Data), Valid: len(state.Data) > 0}, state.Since.UnixMilli(), state.Name)
	if err != nil {
		return fmt.Errorf("changing the schedule entry %q: %w", state.Name, err)
	}
	return nil
}
