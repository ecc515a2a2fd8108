package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
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
