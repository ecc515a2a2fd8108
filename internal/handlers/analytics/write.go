package analytics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// rowsPerInsert keeps a statement below SQLite's 32,766 and PostgreSQL's
// 65,535 parameters.
const rowsPerInsert = 1000

const columns = "day, visitor, at, nonce, site, path, referrer, device, browser, os, country, campaign, kind"

// write stores rows and marks their days as changed, in one transaction: a
// roll-up that sees the mark sees the rows. Rows that are there already stay
// as they are.
func write(ctx context.Context, db *sqlx.DB, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.day, b.day) })
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("storing page views: %w", err)
	}
	defer tx.Rollback() // after a commit this does nothing
	days := map[string]bool{}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		if err := insert(ctx, db, tx, part); err != nil {
			return err
		}
		for _, r := range part {
			days[r.day] = true
		}
	}
	// In one order everywhere, so that two writers cannot wait for each other.
	for _, day := range slices.Sorted(maps.Keys(days)) {
		if err := touch(ctx, db, tx, day); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("storing page views: %w", err)
	}
	return nil
}

func insert(ctx context.Context, db *sqlx.DB, tx *sqlx.Tx, rows []row) error {
	values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?,?,?,?,?,?,?,?),", len(rows)), ",")
	args := make([]any, 0, 13*len(rows))
	for i := range rows {
		r := &rows[i]
		args = append(args, r.day, r.visitor[:], r.at, r.nonce[:], r.site, r.path, r.referrer, r.device, r.browser, r.os, r.country, r.campaign, r.kind)
	}
	query := insertIgnore(db, "cmsjobs_page_views ("+columns+") VALUES "+values)
	if _, err := tx.ExecContext(ctx, db.Rebind(query), args...); err != nil {
		return fmt.Errorf("storing page views: %w", err)
	}
	return nil
}

// touch says that a day has new rows. A day that is closed stays so.
func touch(ctx context.Context, db *sqlx.DB, tx *sqlx.Tx, day string) error {
	query := "INSERT INTO cmsjobs_analytics_days (day, version) VALUES (?, 1) ON CONFLICT (day) DO UPDATE SET version = cmsjobs_analytics_days.version + 1 WHERE cmsjobs_analytics_days.version >= 0"
	if db.DriverName() == "mysql" {
		query = "INSERT INTO cmsjobs_analytics_days (day, version) VALUES (?, 1) ON DUPLICATE KEY UPDATE version = IF(version < 0, version, version + 1)"
	}
	if _, err := tx.ExecContext(ctx, db.Rebind(query), day); err != nil {
		return fmt.Errorf("marking %s as changed: %w", day, err)
	}
	return nil
}
