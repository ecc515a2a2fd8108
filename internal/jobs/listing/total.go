package listing

import (
	"context"
	"database/sql"
	"fmt"
)

// Bound is how many rows of a table are read at most to count some of them.
const Bound = 2000

// DB is what a count needs of a connection.
type DB interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Rebind(query string) string
}

// Total counts a table's rows that fulfil a condition with ? for its values, or
// says −1 where the table has more than Bound rows.
func Total(ctx context.Context, db DB, table, where string, args ...any) (total int64, err error) {
	var rows int64
	if err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 AS x FROM %s LIMIT %d) AS bounded",
		table, Bound+1)).Scan(&rows); err != nil {
		return -1, fmt.Errorf("counting %s: %w", table, err)
	}
	if rows > Bound {
		return -1, nil
	}
	if err := db.QueryRowContext(ctx, db.Rebind("SELECT COUNT(*) FROM "+table+" WHERE "+where), args...).Scan(
		&total); err != nil {
		return -1, fmt.Errorf("counting %s: %w", table, err)
	}
	return total, nil
}
