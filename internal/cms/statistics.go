package cms

import (
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// unknownVariable is how MariaDB and MySQL before 8 answer to a setting of MySQL 8.
const unknownVariable = 1193

// SelectStatistics reads sizes and numbers of rows from information_schema into a
// slice, as they are now: MySQL 8 otherwise answers with those of up to a day ago.
func SelectStatistics(ctx context.Context, db *sqlx.DB, into any, query string, values ...any) error {
	if db.DriverName() != "mysql" {
		return db.SelectContext(ctx, into, query, values...)
	}
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0")
	var unknown *mysql.MySQLError
	if err != nil && !(errors.As(err, &unknown) && unknown.Number == unknownVariable) {
		return err
	}
	return conn.SelectContext(ctx, into, query, values...)
}
