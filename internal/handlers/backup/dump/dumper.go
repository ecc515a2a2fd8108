package dump

import (
	"context"
	"fmt"
	"time"
)

type dumper struct {
	*session
	options    Options
	out        *writer
	structures map[string]map[string]string // of tables, by their names
	summary    Summary
}

func (d *dumper) warn(format string, args ...any) {
	d.summary.Warnings = append(d.summary.Warnings, fmt.Sprintf(format, args...))
}

// begin opens the snapshot that everything is read from.
func (d *dumper) begin(ctx context.Context) error {
	if err := d.settle(ctx); err != nil {
		return fmt.Errorf("preparing the session: %w", err)
	}
	if err := d.snapshot(ctx); err != nil {
		return err
	}
	var now float64
	err := d.conn.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP(NOW(3)), @@character_set_database, @@collation_database").
		Scan(&now, &d.summary.Charset, &d.summary.Collation)
	if err != nil {
		return fmt.Errorf("looking at the database: %w", err)
	}
	d.summary.Snapshot = time.UnixMilli(int64(now * 1000)).UTC()
	d.summary.Server, d.summary.Database = d.server, d.database
	return nil
}
