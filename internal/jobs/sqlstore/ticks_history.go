package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Ticks implements schedule.Book: the history of an entry, newest first; of all
// with "". The cursor is the last tick shown and its entry.
func (s *Store) Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error) {
	list := jobs.List[jobs.TickRecord]{Total: -1}
	if err := s.SettleTicks(ctx); err != nil {
		return list, err
	}
	limit, offset, where, args := p.Limit, p.Offset, "1 = 1", []any{}
	if limit <= 0 {
		limit = 50
	}
	if entry != "" {
		where, args = "entry = ?", append(args, entry)
	}
	if p.Cursor != "" {
		tick, after, ok := strings.Cut(p.Cursor, " ")
		before, err := strconv.ParseInt(tick, 10, 64)
		if err != nil || !ok {
			return list, fmt.Errorf("the cursor %q is not one of this list", p.Cursor)
		}
		where, args, offset = where+" AND (tick < ? OR (tick = ? AND entry > ?))", append(args, before, before, after), 0
	}
	query := fmt.Sprintf("SELECT entry, tick, noted_at, uuid, outcome, note, duration_ms FROM cmsjobs_ticks WHERE %s ORDER BY tick DESC, entry LIMIT %d OFFSET %d", where, limit+1, offset)
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var t jobs.TickRecord
		var tick, noted, duration int64
		err := r.Scan(&t.Entry, &tick, &noted, &t.UUID, &t.Outcome, &t.Note, &duration)
		t.Tick, t.At, t.Duration = time.UnixMilli(tick).UTC(), time.UnixMilli(noted).UTC(), time.Duration(duration)*time.Millisecond
		list.Items = append(list.Items, t)
		return err
	}, query, args...)
	if err != nil {
		return list, fmt.Errorf("reading the schedule's history: %w", err)
	}
	if len(list.Items) > limit {
		list.Items = list.Items[:limit]
		last := list.Items[limit-1]
		list.Next = fmt.Sprintf("%d %s", last.Tick.UnixMilli(), last.Entry)
	}
	return list, nil
}

// SettleTicks copies how jobs ended to the ticks that they came from, before
// the history of runs is rotated.
func (s *Store) SettleTicks(ctx context.Context) error {
	type end struct {
		entry, outcome string
		tick, duration int64
	}
	var ends []end
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var e end
		err := r.Scan(&e.entry, &e.tick, &e.outcome, &e.duration)
		ends = append(ends, e)
		return err
	}, `SELECT t.entry, t.tick, r.outcome, r.duration_ms FROM cmsjobs_ticks t JOIN cmsjobs_runs r ON r.uuid = t.uuid
		WHERE t.outcome = 'enqueued' AND r.outcome IN ('completed','failed','cancelled') LIMIT 500`)
	if err != nil {
		return fmt.Errorf("reading how scheduled jobs ended: %w", err)
	}
	for _, e := range ends {
		if _, err := s.exec(ctx, s.ownDB, "UPDATE cmsjobs_ticks SET outcome = ?, duration_ms = ? WHERE entry = ? AND tick = ? AND outcome = 'enqueued'", e.outcome, e.duration, e.entry, e.tick); err != nil {
			return fmt.Errorf("noting how a scheduled job ended: %w", err)
		}
	}
	return nil
}

// PruneTicks removes ticks that were noted more than age ago.
func (s *Store) PruneTicks(ctx context.Context, age time.Duration) (int64, error) {
	var deleted int64
	for {
		type key struct {
			entry string
			tick  int64
		}
		var keys []key
		err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
			var k key
			err := r.Scan(&k.entry, &k.tick)
			keys = append(keys, k)
			return err
		}, fmt.Sprintf("SELECT entry, tick FROM cmsjobs_ticks WHERE noted_at < %s - %d LIMIT %d", s.millis(), age.Milliseconds(), chunk))
		if err != nil {
			return deleted, fmt.Errorf("reading old ticks: %w", err)
		}
		err = s.inTx(ctx, "removing old ticks", func(x tx) error {
			for _, k := range keys {
				if _, err := s.exec(ctx, x.own, "DELETE FROM cmsjobs_ticks WHERE entry = ? AND tick = ?", k.entry, k.tick); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return deleted, err
		}
		deleted += int64(len(keys))
		if len(keys) < chunk {
			return deleted, nil
		}
	}
}
