package cms

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// TableSize is what a table takes. Rows is the server's estimate; −1 when it
// has none.
type TableSize struct {
	Name  string `db:"name"`
	Bytes int64  `db:"bytes"`
	Rows  int64  `db:"row_count"`
}

// TableSizes lists the 100 largest tables of the database, with their indexes,
// from the server's own figures: nothing is counted. SQLite has no figures by
// table, so its whole file is one entry.
func (s *Site) TableSizes(ctx context.Context) ([]TableSize, error) {
	query := database.Of(s.DB).Choose(database.Variants{
		MySQL: `SELECT TABLE_NAME AS name, CAST(COALESCE(DATA_LENGTH, 0) + COALESCE(INDEX_LENGTH, 0) AS SIGNED) AS
			bytes, CAST(COALESCE(TABLE_ROWS, -1) AS SIGNED) AS row_count
			FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY bytes
			DESC, name LIMIT 100`,
		PostgreSQL: `SELECT c.relname::text AS name, pg_total_relation_size(c.oid) AS bytes, c.reltuples::bigint AS
			row_count
			FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace ORDER BY
			bytes DESC, name LIMIT 100`,
		SQLite: `SELECT '(the whole database)' AS name, p.page_count * s.page_size AS bytes, -1 AS row_count FROM
			pragma_page_count() p, pragma_page_size() s`,
	})
	var list []TableSize
	if err := database.SelectStatistics(ctx, s.DB, &list, query); err != nil {
		return nil, fmt.Errorf("asking for the sizes of tables: %w", err)
	}
	return list, nil
}
