package queue

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// That an entry is still there is written when that was not done for touchAfter.
// One that was silent while another was seen for absentFor without a longer
// silence was taken out of the timetable. When all were silent, no scheduler ran.
const (
	touchAfter = 4 * time.Minute
	absentFor  = 30 * time.Minute
)

// seenEntry is a schedule entry with the cron expression that it then had.
type seenEntry struct{ name, cron string }

func entryOf(name, cron string) seenEntry { return seenEntry{name, jobs.PlainText(cron, 191)} }

type seenAt struct{ first, back, last int64 } // Unix milliseconds

// FirstSeen implements schedule.Ticker.
func (s *Store) FirstSeen(ctx context.Context, entries map[string]string) (map[string]time.Time, error) {
	rows, err := s.seenEntries(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading since when schedule entries are there: %w", err)
	}
	now, err := s.tables.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	begun := make(map[string]time.Time, len(entries))
	var quiet, fresh []seenEntry
	for name, cron := range entries {
		e := entryOf(name, cron)
		row, known := rows[e]
		switch {
		case !known || absent(row, rows):
			begun[name], fresh = now, append(fresh, e)
		case now.UnixMilli()-row.last > touchAfter.Milliseconds():
			quiet = append(quiet, e)
			fallthrough
		default:
			begun[name] = tables.UnixMilli(row.first)
		}
	}
	if err := s.touchEntries(ctx, quiet, now); err != nil {
		return nil, err
	}
	return begun, s.addEntries(ctx, fresh, now)
}

// absent says that a scheduler ran for long while no timetable had the entry.
func absent(row seenAt, rows map[seenEntry]seenAt) bool {
	for _, other := range rows {
		if other.last-max(other.back, row.last) > absentFor.Milliseconds() {
			return true
		}
	}
	return false
}

// seenEntries reads all entries that were ever seen.
func (s *Store) seenEntries(ctx context.Context) (map[seenEntry]seenAt, error) {
	rows := map[seenEntry]seenAt{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var e seenEntry
		var at seenAt
		err := r.Scan(&e.name, &e.cron, &at.first, &at.back, &at.last)
		rows[e] = at
		return err
	}, "SELECT entry, cron, first_at, back_at, last_at FROM cmsjobs_schedule_seen")
	return rows, err
}

// touchEntries writes in one statement that entries are still there: a crash
// between two would make some look absent.
func (s *Store) touchEntries(ctx context.Context, list []seenEntry, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	ms := now.UnixMilli()
	parts, args := make([]string, len(list)), []any{ms - absentFor.Milliseconds(), ms, ms}
	for i, e := range list {
		parts[i], args = "entry = ? AND cron = ?", append(args, e.name, e.cron)
	}
	touch := "UPDATE cmsjobs_schedule_seen SET back_at = CASE WHEN last_at < ? THEN ? ELSE back_at END, last_at = ? " +
		"WHERE "
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, touch+strings.Join(parts, " OR "), args...); err != nil {
		return fmt.Errorf("noting that schedule entries are there: %w", err)
	}
	return nil
}

// addEntries writes entries that begin now.
func (s *Store) addEntries(ctx context.Context, list []seenEntry, now time.Time) error {
	insert := s.tables.Dialect.Upsert("cmsjobs_schedule_seen", "entry, cron, first_at, back_at, last_at", "(?,?,?,?,?)",
		"entry, cron", "first_at", "back_at", "last_at")
	ms := now.UnixMilli()
	for _, e := range list {
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB, insert, e.name, e.cron, ms, ms, ms); err != nil {
			return fmt.Errorf("noting the schedule entry %s: %w", e.name, err)
		}
	}
	return nil
}
