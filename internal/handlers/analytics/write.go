package analytics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// rowsPerInsert keeps a statement below SQLite's 32,766 and PostgreSQL's
// 65,535 parameters.
const rowsPerInsert = 1000

const columns = "day, visitor, at, nonce, site, path, referrer, device, browser, os, country, campaign, term, " +
	"content, event, kind"

const columnCount = 16

// write stores rows and marks their days as changed, in one transaction: a
// roll-up that sees the mark sees the rows. Rows that are there already stay
// as they are.
func write(ctx context.Context, db *sqlx.DB, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.day, b.day) })
	return database.InTx(ctx, db, "storing page views", func(tx *sqlx.Tx) error {
		days := map[string]bool{}
		for part := range slices.Chunk(rows, rowsPerInsert) {
			if err := insert(ctx, tx, part); err != nil {
				return err
			}
			for _, r := range part {
				days[r.day] = true
			}
		}
		// In one order everywhere, so that two writers cannot wait for each other.
		for _, day := range slices.Sorted(maps.Keys(days)) {
			if err := touch(ctx, tx, day); err != nil {
				return err
			}
		}
		return nil
	})
}

func insert(ctx context.Context, tx *sqlx.Tx, rows []row) error {
	args := make([]any, 0, columnCount*len(rows))
	for i := range rows {
		r := &rows[i]
		args = append(args, r.day, r.visitor[:], r.at, r.nonce[:], r.site, r.path, r.referrer, r.device, r.browser,
			r.os, r.country, r.campaign, r.term, r.content, r.event, r.kind)
	}
	query := database.Of(tx).InsertIgnore("cmsjobs_page_views", columns,
		database.Rows("("+database.Marks(columnCount)+")", len(rows)))
	_, err := tx.ExecContext(ctx, tx.Rebind(query), args...)
	return err
}

// touch says that a day has new rows. A day that is closed stays so.
func touch(ctx context.Context, tx *sqlx.Tx, day string) error {
	query := "INSERT INTO cmsjobs_analytics_days (day, version) VALUES (?, 1)" + database.Of(tx).OnConflict("day",
		"version = CASE WHEN cmsjobs_analytics_days.version < 0 THEN cmsjobs_analytics_days.version ELSE "+
			"cmsjobs_analytics_days.version + 1 END")
	if _, err := tx.ExecContext(ctx, tx.Rebind(query), day); err != nil {
		return fmt.Errorf("marking %s as changed: %w", day, err)
	}
	return nil
}
