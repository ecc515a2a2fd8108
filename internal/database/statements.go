package database

import (
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// InsertID runs an INSERT of one row, written with ? for its arguments, and says
// which number its column id got.
func InsertID(ctx context.Context, q sqlx.ExtContext, insert string, args ...any) (id int64, err error) {
	if Of(q).Returning {
		err = sqlx.GetContext(ctx, q, &id, q.Rebind(insert+" RETURNING id"), args...)
		return id, err
	}
	result, err := q.ExecContext(ctx, q.Rebind(insert), args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// unknownVariable is how MariaDB and MySQL before 8 answer to a setting of MySQL 8.
const unknownVariable = 1193

// SelectStatistics reads sizes and numbers of rows from information_schema into a
// slice, as they are now: MySQL 8 otherwise answers with those of up to a day ago.
func SelectStatistics(ctx context.Context, db *sqlx.DB, into any, query string, args ...any) error {
	if Of(db).Name != MySQL {
		return db.SelectContext(ctx, into, query, args...)
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
	return conn.SelectContext(ctx, into, query, args...)
}
