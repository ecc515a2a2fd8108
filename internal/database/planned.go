package database

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// keptStatements bounds what PostgreSQL keeps for one connection.
const keptStatements = 32

// Planned are the arguments of a statement that PostgreSQL keeps, with its plan, for the
// connection. Planning a statement of several parts takes it longer than doing it. It is
// for a text that is always the same, and whose plan does not depend on the values.
func Planned(args []any) []any {
	return append([]any{pgx.QueryExecModeCacheStatement}, args...)
}

// Unplanned says that PostgreSQL, or a pooler before it that gives each transaction
// another connection, has no such statement, has one that it should not have, or has
// one of a table that was changed since. Nothing was done: it may go without Planned.
func Unplanned(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "26000", "42P05", "0A000": // not there; there already; its result would be another
		return true
	}
	return false
}
