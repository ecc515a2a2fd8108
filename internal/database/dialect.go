package database

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Dialect holds every difference between the three databases. All other SQL is
// shared.
type Dialect struct {
	Name       string // mysql, postgres, sqlite: also the folder of migrations
	quote      string
	Now        string // whole Unix seconds by the server's clock, as the statement starts
	Millis     string // the same in milliseconds
	ForUpdate  string
	SkipLocked string
	Bytes      string // function: length of a text in bytes
	MaxParams  int
	Bind       int
}

var Dialects = map[string]Dialect{
	"mysql": {Name: "mysql", quote: "`", Now: "UNIX_TIMESTAMP()", Millis: "CAST(UNIX_TIMESTAMP(NOW(3))*1000 AS SIGNED)",
		ForUpdate: " FOR UPDATE", SkipLocked: " FOR UPDATE SKIP LOCKED", Bytes: "LENGTH", MaxParams: 60000, Bind: sqlx.QUESTION},
	"pgx": {Name: "postgres", quote: `"`, Now: "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())) AS BIGINT)",
		Millis:    "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())*1000) AS BIGINT)",
		ForUpdate: " FOR UPDATE", SkipLocked: " FOR UPDATE SKIP LOCKED", Bytes: "octet_length", MaxParams: 60000, Bind: sqlx.DOLLAR},
	// A write transaction of SQLite is alone: BEGIN IMMEDIATE is its row lock.
	// Not ": SQLite takes the name of a column that is not there for a text then.
	"sqlite": {Name: "sqlite", quote: "`", Now: "unixepoch()", Millis: "CAST(unixepoch('subsec')*1000 AS INTEGER)",
		Bytes: "octet_length", MaxParams: 30000, Bind: sqlx.QUESTION},
}

// DialectOf finds the dialect of a database/sql driver.
func DialectOf(driver string) (Dialect, error) {
	d, ok := Dialects[driver]
	if !ok {
		return d, fmt.Errorf("no dialect for the driver %q; mysql, pgx and sqlite are known", driver)
	}
	return d, nil
}

// Ident quotes a table or column name, which was checked before.
func (d Dialect) Ident(name string) string { return d.quote + name + d.quote }

// In makes a condition that column is one of ids. PostgreSQL gets an array, so
// that the statement's text stays the same; the others get the numbers.
func (d Dialect) In(column string, ids []int64) (string, []any) {
	if d.Name == "postgres" {
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

// InWords is in for texts.
func InWords(column string, words []string) (string, []any) {
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

// InsertOrSkip inserts one row unless its key is there.
func (d Dialect) InsertOrSkip(table, columns, values, key string) string {
	if d.Name == "mysql" {
		return "INSERT IGNORE INTO " + table + " (" + columns + ") VALUES " + values
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + " ON CONFLICT (" + key + ") DO NOTHING"
}

// Upsert inserts one row or changes the given columns of the row with its key.
func (d Dialect) Upsert(table, columns, values, key string, changed ...string) string {
	sets := make([]string, len(changed))
	for i, c := range changed {
		if d.Name == "mysql" {
			sets[i] = c + "=VALUES(" + c + ")"
		} else {
			sets[i] = c + "=excluded." + c
		}
	}
	conflict := " ON CONFLICT (" + key + ") DO UPDATE SET "
	if d.Name == "mysql" {
		conflict = " ON DUPLICATE KEY UPDATE "
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + conflict + strings.Join(sets, ", ")
}

// opening is how much of a text opensWith looks at, in characters; on MySQL in
// bytes, as counting characters would cost more than reading the row.
const opening = 512

// OpensWith says whether a column holds a text near its start, byte for byte:
// a collation would be slow.
func (d Dialect) OpensWith(column, text string) string {
	switch d.Name {
	case "mysql":
		return fmt.Sprintf("(INSTR(SUBSTR(CAST(%s AS BINARY), 1, %d), '%s') > 0)", column, opening, text)
	case "postgres":
		return fmt.Sprintf("(strpos(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
	}
	return fmt.Sprintf("(instr(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
}
