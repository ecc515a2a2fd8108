package database

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"
)

// The names of the servers, as Dialect.Name has them. MariaDB and TiDB are
// spoken to as MySQL.
const (
	MySQL      = "mysql"
	PostgreSQL = "postgres"
	SQLite     = "sqlite"
)

// ChangeFeed is how a server says that rows were written.
type ChangeFeed string

// The feeds: a replica's log, NOTIFY of a trigger, events of the database's file.
const (
	BinaryLog     ChangeFeed = "binary log"
	Notifications ChangeFeed = "notifications"
	FileEvents    ChangeFeed = "file events"
)

// Dialect holds every difference between the SQL of the servers. All other SQL
// is shared.
type Dialect struct {
	Name  string // MySQL, PostgreSQL or SQLite: also the folder of migrations
	quote string

	// Now is whole Unix seconds by the server's clock as the statement starts,
	// Millis the same in milliseconds: one value, however long the statement
	// runs, so that what it compares and what it writes agree.
	Now, Millis string
	// Clock is milliseconds at the moment at which the server computes it. It is
	// for a statement that waits for a row's lock first (ForUpdate): Millis would
	// be of before the wait, and so behind what the lock's last holder wrote.
	Clock string
	// ClockAfterLock says that a SELECT … FOR UPDATE computes its Clock when it has
	// won the row's lock. PostgreSQL computes it before: there the clock is asked
	// by another statement.
	ClockAfterLock bool

	ForUpdate string // ends a SELECT that locks its rows until the transaction ends
	// OneWriter says that a write transaction is alone in the database, and so
	// needs no locks of rows.
	OneWriter bool
	Returning bool // INSERT … RETURNING returns columns of the new rows
	Arrays    bool // a parameter may be an array: = ANY(?), unnest(?)
	// ValuesTable says that VALUES may be read as a table with the columns column1, column2, ….
	ValuesTable bool
	// TypedSelect says that a parameter in a SELECT list needs a CAST.
	TypedSelect bool
	// KeyInIndexes says that every index ends with the primary key by itself, and that rows
	// are read in that order. InnoDB does so too, TiDB only where the index names the key:
	// it would sort all rows of a queue. InnoDB stores a key that is named once.
	KeyInIndexes bool
	// DeletedStay says that an index keeps deleted rows until a vacuum: MAX(id) reads all of
	// them at the index's end, unless the statement says where to begin.
	DeletedStay bool
	// Engines says that a table has a storage engine, which may know no transactions.
	Engines bool
	// ConvertsTimestamps says that a column of the type TIMESTAMP is written and
	// read in the session's time zone; all other wall clocks stay as they are.
	ConvertsTimestamps bool
	// LooseTypes says that a column holds any value whatever its type says: times
	// may be in a column of texts, and no integer is too large.
	LooseTypes bool

	Changes ChangeFeed // how the server says that rows were written

	Bytes     string // function: length of a text in bytes
	True      string // of a boolean column
	MaxParams int    // arguments that a statement may have
	Bind      int    // of sqlx.Rebind
}

var dialects = map[string]Dialect{
	"mysql": {Name: MySQL, quote: "`", Now: "UNIX_TIMESTAMP()", Millis: "CAST(UNIX_TIMESTAMP(NOW(3))*1000 AS SIGNED)",
		Clock: "CAST(UNIX_TIMESTAMP(SYSDATE(3))*1000 AS SIGNED)", ClockAfterLock: true,
		ForUpdate: " FOR UPDATE", Bytes: "LENGTH", True: "1", MaxParams: 60000,
		Bind:    sqlx.QUESTION,
		Engines: true, ConvertsTimestamps: true, Changes: BinaryLog},
	"pgx": {Name: PostgreSQL, quote: `"`, Now: "CAST(floor(date_part('epoch', statement_timestamp())) AS BIGINT)",
		Millis:    "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())*1000) AS BIGINT)",
		Clock:     "CAST(floor(EXTRACT(EPOCH FROM clock_timestamp())*1000) AS BIGINT)",
		ForUpdate: " FOR UPDATE", Returning: true, Bytes: "octet_length",
		True:      "true",
		MaxParams: 60000, Bind: sqlx.DOLLAR, Arrays: true, TypedSelect: true, DeletedStay: true,
		Changes: Notifications},
	// A write transaction of SQLite is alone: BEGIN IMMEDIATE is its row lock.
	// Not ": SQLite takes the name of a column that is not there for a text then.
	"sqlite": {Name: SQLite, quote: "`", Now: "unixepoch()", Millis: "CAST(unixepoch('subsec')*1000 AS INTEGER)",
		Clock: "CAST(unixepoch('subsec')*1000 AS INTEGER)", ClockAfterLock: true, OneWriter: true, Returning: true,
		Bytes: "octet_length", True: "1", MaxParams: 30000, Bind: sqlx.QUESTION, KeyInIndexes: true, LooseTypes: true,
		ValuesTable: true, Changes: FileEvents},
}

// DialectOf finds the dialect of a database/sql driver.
func DialectOf(driver string) (Dialect, error) {
	d, ok := dialects[driver]
	if !ok {
		return d, fmt.Errorf("no dialect for the driver %q; mysql, pgx and sqlite are known", driver)
	}
	return d, nil
}

// DialectFor is the dialect of a database that anybody opened.
func DialectFor(db *sqlx.DB) (Dialect, error) { return DialectOf(db.DriverName()) }

// Of is the dialect of an open database, or of a transaction in it. Connect opens
// no database without one; for a driver of somebody else's it panics.
func Of(q interface{ DriverName() string }) Dialect {
	d, err := DialectOf(q.DriverName())
	if err != nil {
		panic(err)
	}
	return d
}

// Variants is one text for each server.
type Variants struct{ MySQL, PostgreSQL, SQLite string }

// Choose is the variant of this server.
func (d Dialect) Choose(v Variants) string {
	switch d.Name {
	case MySQL:
		return v.MySQL
	case PostgreSQL:
		return v.PostgreSQL
	}
	return v.SQLite
}

// Ident quotes a table or column name, which was checked before.
func (d Dialect) Ident(name string) string { return d.quote + name + d.quote }

// KeepsStatements says that statements are kept whose text comes again (see Plans and
// keptConn): what differs from one to the next is a parameter.
func (d Dialect) KeepsStatements() bool { return d.Arrays || d.OneWriter }

// In makes a condition that column is one of ids. PostgreSQL gets an array, so
// that the statement's text stays the same; the others get the numbers. A single id is
// no array: PostgreSQL would plan a kept statement each time (see Plans), as its
// plan for any array looks dearer than that for one of one element. SQLite's is kept, too.
func (d Dialect) In(column string, ids []int64) (string, []any) {
	if d.KeepsStatements() && len(ids) == 1 {
		return column + " = ?", []any{ids[0]}
	}
	if d.Arrays {
		return column + " = ANY(?)", []any{ids}
	}
	return inNumbers(column, ids), nil
}

func inNumbers(column string, ids []int64) string {
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
	return b.String()
}

// InWords is In for texts.
func InWords(column string, words []string) (string, []any) {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	return column + " IN (" + Marks(len(words)) + ")", args
}

// Marks is the places of n arguments in a list: "?,?,?". Of none it is NULL, so
// that IN () stays SQL and names nothing.
func Marks(n int) string {
	if n == 0 {
		return "NULL"
	}
	return strings.Repeat("?,", n-1) + "?"
}

// Rows repeats the values of one row, "(?, 0)", for an INSERT of n rows.
func Rows(row string, n int) string { return strings.Repeat(row+",", n-1) + row }

// InsertIgnore inserts the rows of values, "(?, ?), (?, ?)", but those whose key
// is there.
func (d Dialect) InsertIgnore(table, columns, values string) string {
	if d.Name == MySQL {
		return "INSERT IGNORE INTO " + table + " (" + columns + ") VALUES " + values
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + " ON CONFLICT DO NOTHING"
}

// InsertOrLock inserts one row, or locks the row that has its key until the transaction
// ends. number is a column that is 0 in no row of another transaction. MySQL's INSERT IGNORE
// would lock by halves, with others: of two who then want the row for themselves each waits
// for the other, and all but one are undone by a deadlock.
func (d Dialect) InsertOrLock(table, columns, values, number string) string {
	if d.Name == MySQL {
		return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + " ON DUPLICATE KEY UPDATE " + number +
			" = LAST_INSERT_ID(" + number + ")"
	}
	return d.InsertIgnore(table, columns, values)
}

// IsNew says of the result of InsertOrLock that the row was inserted. On MySQL a row that
// stays as it is counts as affected too, if the connection counts found rows: its number
// tells them apart.
func (d Dialect) IsNew(r sql.Result) (bool, error) {
	if d.Name == MySQL {
		number, err := r.LastInsertId()
		return number == 0, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// UnionAll has the rows of both, of which the second may be ordered and limited.
func (d Dialect) UnionAll(first, second string) string {
	if d.Name == SQLite { // it knows no SELECT in brackets
		return first + " UNION ALL SELECT * FROM (" + second + ")"
	}
	return "(" + first + ") UNION ALL (" + second + ")"
}

// Upsert inserts rows, or changes the given columns of those whose key is there.
func (d Dialect) Upsert(table, columns, values, key string, changed ...string) string {
	sets := make([]string, len(changed))
	for i, c := range changed {
		sets[i] = c + "=" + d.Inserted(c)
	}
	return "INSERT INTO " + table + " (" + columns + ") VALUES " + values + d.OnConflict(key, sets...)
}

// OnConflict ends an INSERT: a row whose key is there is changed by sets,
// "column = expression". An expression names the row's own columns with their
// table, and those that were to be inserted by Inserted. MySQL assigns from left
// to right: an expression sees what the ones before it have written.
func (d Dialect) OnConflict(key string, sets ...string) string {
	conflict := " ON CONFLICT (" + key + ") DO UPDATE SET "
	if d.Name == MySQL {
		conflict = " ON DUPLICATE KEY UPDATE "
	}
	return conflict + strings.Join(sets, ", ")
}

// Inserted is, in OnConflict, the value of a column that was to be inserted.
func (d Dialect) Inserted(column string) string {
	if d.Name == MySQL {
		return "VALUES(" + column + ")"
	}
	return "excluded." + column
}

// DeleteSome deletes the first limit rows that where names, so that the
// statement's locks are few and short. order should be that of an index which
// finds them; key names a row.
func (d Dialect) DeleteSome(table, key, where, order string, limit int) string {
	rest := fmt.Sprintf(" WHERE %s ORDER BY %s LIMIT %d", where, order, limit)
	if d.Name == MySQL {
		return "DELETE FROM " + table + rest
	}
	return "DELETE FROM " + table + " WHERE (" + key + ") IN (SELECT " + key + " FROM " + table + rest + ")"
}

// SameBytes compares a column with an argument byte by byte: the collations of
// MySQL would take "A" for "a".
func (d Dialect) SameBytes(column string) string {
	if d.Name == MySQL {
		return "CAST(" + column + " AS BINARY) = CAST(? AS BINARY)"
	}
	return column + " = ?"
}

// Checksum is an expression that sums a checksum of each row's columns, whatever
// the rows' order. SQLite has none: ok is false.
func (d Dialect) Checksum(columns []string) (expression string, ok bool) {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = "COALESCE(" + d.Choose(Variants{MySQL: c, PostgreSQL: c + "::text"}) + ", '~')"
	}
	row := "CONCAT_WS('|', " + strings.Join(texts, ", ") + ")"
	return d.Choose(Variants{MySQL: "COALESCE(SUM(CRC32(" + row + ")), 0)",
		PostgreSQL: "COALESCE(SUM(hashtextextended(" + row + ", 7)), 0)::text"}), !d.OneWriter
}

// opening is how much of a text opensWith looks at, in characters; on MySQL in
// bytes, as counting characters would cost more than reading the row.
const opening = 512

// OpensWith says whether a column holds a text near its start, byte for byte:
// a collation would be slow.
func (d Dialect) OpensWith(column, text string) string {
	switch d.Name {
	case MySQL:
		return fmt.Sprintf("(INSTR(SUBSTR(CAST(%s AS BINARY), 1, %d), '%s') > 0)", column, opening, text)
	case PostgreSQL:
		return fmt.Sprintf("(strpos(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
	}
	return fmt.Sprintf("(instr(SUBSTR(%s, 1, %d), '%s') > 0)", column, opening, text)
}
