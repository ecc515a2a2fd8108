package sqlstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

// dialect holds every difference between the three databases. All other SQL is
// shared.
type dialect struct {
	name       string // mysql, postgres, sqlite: also the folder of migrations
	quote      string
	now        string // whole Unix seconds by the server's clock, as the statement starts
	millis     string // the same in milliseconds
	forUpdate  string
	skipLocked string
	bytes      string // function: length of a text in bytes
	maxParams  int
	bind       int
}

var dialects = map[string]dialect{
	"mysql": {name: "mysql", quote: "`", now: "UNIX_TIMESTAMP()", millis: "CAST(UNIX_TIMESTAMP(NOW(3))*1000 AS SIGNED)",
		forUpdate: " FOR UPDATE", skipLocked: " FOR UPDATE SKIP LOCKED", bytes: "LENGTH", maxParams: 60000, bind: sqlx.QUESTION},
	"pgx": {name: "postgres", quote: `"`, now: "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())) AS BIGINT)",
		millis:    "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())*1000) AS BIGINT)",
		forUpdate: " FOR UPDATE", skipLocked: " FOR UPDATE SKIP LOCKED", bytes: "octet_length", maxParams: 60000, bind: sqlx.DOLLAR},
	// A write transaction of SQLite is alone: BEGIN IMMEDIATE is its row lock.
	// Not ": SQLite takes the name of a column that is not there for a text then.
	"sqlite": {name: "sqlite", quote: "`", now: "unixepoch()", millis: "CAST(unixepoch('subsec')*1000 AS INTEGER)",
		bytes: "octet_length", maxParams: 30000, bind: sqlx.QUESTION},
}

// dialectOf finds the dialect of a database/sql driver.
func dialectOf(driver string) (dialect, error) {
	d, ok := dialects[driver]
	if !ok {
		return d, fmt.Errorf("no dialect for the driver %q; mysql, pgx and sqlite are known", driver)
	}
	return d, nil
}

// ident quotes a table or column name, which was checked before.
func (d dialect) ident(name string) string { return d.quote + name + d.quote }

// in makes a condition that column is one of ids. PostgreSQL gets an array, so
// that the statement's text stays the same; the others get the numbers.
func (d dialect) in(column string, ids []int64) (string, []any) {
	if d.name == "postgres" {
		return column + " = ANY(?)", []any{ids}
	}
	var b strings.Builder
	b.Grow(len(column) + 6 + 8*len(ids))
	b.WriteString(column)
	b.WriteString(" IN (")
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	b.WriteByte(')')
	return b.String(), nil
}

// inWords is in for texts.
func inWords(column string, words []string) (string, []any) {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	return column + " IN (" + marks(len(words)) + ")", args
}

// marks is "?,?,?".
func marks(n int) string {
	if n == 0 {
		return "NULL"
	}
	return strings.Repeat("?,", n-1) + "?"
}

// insertOrSkip inserts one row unless its key is there.
func (d dialect) insertOrSkip(table, columns, values, key string) string {
	if d.name == "mysql" {
		return "INSERT IGNORE INTO " + table + " (" + columns + ") VALUES " + values
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + " ON CONFLICT (" + key + ") DO NOTHING"
}

// upsert inserts one row or changes the given columns of the row with its key.
func (d dialect) upsert(table, columns, values, key string, changed ...string) string {
	sets := make([]string, len(changed))
	for i, c := range changed {
		if d.name == "mysql" {
			sets[i] = c + "=VALUES(" + c + ")"
		} else {
			sets[i] = c + "=excluded." + c
		}
	}
	conflict := " ON CONFLICT (" + key + ") DO UPDATE SET "
	if d.name == "mysql" {
		conflict = " ON DUPLICATE KEY UPDATE "
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + conflict + strings.Join(sets, ", ")
}

// opening is how much of a text opensWith looks at, in characters; on MySQL in
// bytes, as counting characters would cost more than reading the row.
const opening = 512

// opensWith says whether a column holds a text near its start, byte for byte:
// a collation would be slow.
func (d dialect) opensWith(column, text string) string {
	switch d.name {
	case "mysql":
		return fmt.Sprintf("(INSTR(SUBSTR(CAST(%s AS BINARY), 1, %d), '%s') > 0)", column, opening, text)
	case "postgres":
		return fmt.Sprintf("(strpos(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
	}
	return fmt.Sprintf("(instr(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
}
