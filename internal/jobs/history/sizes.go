package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// keepSizes is how long sizes are kept.
const keepSizes = 400 * 24 * time.Hour

// Size is how much space a part of the site took at the end of a day, or when it
// was measured last.
type Size struct {
	Day   string // 2006-01-02 in UTC
	Part  string // cache, logs, media, backup, table
	Bytes int64
}

// KeepSizes writes down today's sizes by part, over what was measured earlier
// today, and forgets those that are older than 400 days.
func (s *Store) KeepSizes(ctx context.Context, sizes map[string]int64) error {
	if len(sizes) == 0 {
		return nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var values []string
	var args []any
	for part, bytes := range sizes {
		values = append(values, fmt.Sprintf("(?,?,%d,%d)", bytes, now.UnixMilli()))
		args = append(args, now.Format(time.DateOnly), part)
	}
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.Upsert("cmsjobs_usage",
		"day, part, bytes, measured_at", strings.Join(values, ","), "day, part", "bytes", "measured_at"),
		args...); err != nil {
		return fmt.Errorf("keeping sizes: %w", err)
	}
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_usage WHERE day < ?",
		now.Add(-keepSizes).Format(time.DateOnly)); err != nil {
		return fmt.Errorf("forgetting old sizes: %w", err)
	}
	return nil
}

// SizesAge is how long ago sizes were measured last; ever is false where they never were.
func (s *Store) SizesAge(ctx context.Context) (age time.Duration, ever bool, err error) {
	var now int64
	var last sql.NullInt64
	if _, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&now, &last}, "SELECT "+s.tables.MillisNow()+
		", (SELECT MAX(measured_at) FROM cmsjobs_usage)"); err != nil {
		return 0, false, fmt.Errorf("asking when sizes were measured: %w", err)
	}
	return time.Duration(now-last.Int64) * time.Millisecond, last.Valid, nil
}

// Sizes lists what was kept since a day, oldest first.
func (s *Store) Sizes(ctx context.Context, since time.Time) ([]Size, error) {
	var list []Size
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var x Size
		err := r.Scan(&x.Day, &x.Part, &x.Bytes)
		list = append(list, x)
		return err
	}, "SELECT day, part, bytes FROM cmsjobs_usage WHERE day >= ? ORDER BY day, part",
		since.UTC().Format(time.DateOnly))
	if err != nil {
		return nil, fmt.Errorf("reading sizes: %w", err)
	}
	return list, nil
}

// Volume says how many rows the tables of the queue hold; waiting jobs are
// counted up to limit + 1.
func (s *Store) Volume(ctx context.Context, limit int64) (jobs.Volume, error) {
	var v jobs.Volume
	rows := func(table string) string { return "(SELECT COALESCE(MAX(id) - MIN(id) + 1, 0) FROM " + table + ")" }
	waiting, failed, runs := rows(s.tables.Layout.Table().Name), rows(s.tables.Failed.Name), rows("cmsjobs_runs")
	var err error
	if s.tables.OwnDB == s.tables.DB {
		_, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&v.Waiting, &v.Failed, &v.Runs}, "SELECT "+waiting+", "+
			failed+", "+runs)
	} else if _, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&v.Waiting, &v.Failed}, "SELECT "+waiting+", "+
		failed); err == nil {
		_, err = s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&v.Runs}, "SELECT "+runs)
	}
	if err != nil {
		return v, fmt.Errorf("measuring the tables of the queue: %w", err)
	}
	if v.Waiting <= limit {
		return v, nil
	}
	_, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&v.Waiting}, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT id "+
		"FROM %s LIMIT %d) AS part", s.tables.Layout.Table().Name, limit+1))
	return v, err
}
