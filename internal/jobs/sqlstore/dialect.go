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

// moment is a column that holds a point in time.
type moment struct {
	name string // quoted
	kind momentKind
	d    dialect
}

type momentKind int

const (
	unixSeconds  momentKind = iota
	wallClock               // DATETIME, TIMESTAMP, timestamp without zone, text: in the session's zone
	zonedInstant            // timestamptz
)

// of turns an expression of Unix seconds into a value of the column's type.
func (m moment) of(seconds string) string {
	switch {
	case m.kind == unixSeconds:
		return seconds
	case m.d.name == "mysql":
		return "FROM_UNIXTIME(" + seconds + ")"
	case m.d.name == "sqlite":
		return "datetime(" + seconds + ", 'unixepoch')"
	case m.kind == wallClock:
		return "CAST(to_timestamp(" + seconds + ") AS timestamp)"
	}
	return "to_timestamp(" + seconds + ")"
}

// at is the column's value for a known moment.
func (m moment) at(unix int64) string { return m.of(strconv.FormatInt(unix, 10)) }

// seconds reads the column as Unix seconds.
func (m moment) seconds() string {
	switch {
	case m.kind == unixSeconds:
		return m.name
	case m.d.name == "mysql":
		return "CAST(UNIX_TIMESTAMP(" + m.name + ") AS SIGNED)"
	case m.d.name == "sqlite":
		return "CAST(strftime('%s', " + m.name + ") AS INTEGER)"
	}
	return "CAST(floor(EXTRACT(EPOCH FROM CAST(" + m.name + " AS timestamptz))) AS BIGINT)"
}

// text reads the column exactly, for a position in its order; literal turns
// what text gave back into a value to compare with.
func (m moment) text() string {
	switch {
	case m.kind == unixSeconds:
		return m.name
	case m.d.name == "mysql":
		return "CAST(" + m.name + " AS CHAR)"
	}
	return "CAST(" + m.name + " AS TEXT)"
}

func (m moment) literal(text string) (string, []any) {
	switch {
	case m.kind == unixSeconds:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
		return "0", nil
	case m.d.name == "postgres" && m.kind == wallClock:
		return "CAST(? AS timestamp)", []any{text}
	case m.d.name == "postgres":
		return "CAST(? AS timestamptz)", []any{text}
	case m.d.name == "mysql":
		return "CAST(? AS DATETIME(6))", []any{text}
	}
	return "?", []any{text}
}
