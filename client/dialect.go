package client

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// dialect holds the differences between the databases.
type dialect struct {
	name      string
	quote     string
	now       string // whole Unix seconds by the server's clock
	millis    string // the same in milliseconds
	columns   string // statement: names and types of a table's columns
	forUpdate string
}

var dialects = map[string]dialect{
	"mysql": {name: "mysql", quote: "`", now: "UNIX_TIMESTAMP()",
		millis: "CAST(UNIX_TIMESTAMP(NOW(3))*1000 AS SIGNED)", forUpdate: " FOR UPDATE",
		columns: "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND " +
			"table_name = ?"},
	"pgx": {name: "postgres", quote: `"`, now: "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())) AS BIGINT)",
		millis: "CAST(floor(EXTRACT(EPOCH FROM statement_timestamp())*1000) AS BIGINT)", forUpdate: " FOR UPDATE",
		columns: "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = " +
			"ANY(current_schemas(false)) AND table_name = ?"},
	"sqlite": {name: "sqlite", quote: "`", now: "unixepoch()", millis: "CAST(unixepoch('subsec')*1000 AS INTEGER)",
		columns: "SELECT name, lower(type) FROM pragma_table_info(?)"},
}

func dialectOf(driver string) (dialect, error) {
	d, known := dialects[driver]
	if !known {
		return d, fmt.Errorf("no dialect for the driver %q; mysql, pgx and sqlite are known", driver)
	}
	return d, nil
}

// bind turns ? into the numbered marks of PostgreSQL. No statement of this
// package has a ? in a text.
func (d dialect) bind(statement string) string {
	if d.name != "postgres" {
		return statement
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// moment is how a column of the given type holds the moment that an expression
// of Unix seconds names.
func (d dialect) moment(kind, seconds string) string {
	wall := strings.Contains(kind, "time") || strings.Contains(kind, "date") || d.name == "sqlite" &&
		strings.Contains(kind, "text")
	switch {
	case !wall:
		return seconds
	case d.name == "mysql":
		return "FROM_UNIXTIME(" + seconds + ")"
	case d.name == "sqlite":
		return "datetime(" + seconds + ", 'unixepoch')"
	case strings.Contains(kind, "with time zone"):
		return "to_timestamp(" + seconds + ")"
	}
	return "CAST(to_timestamp(" + seconds + ") AS timestamp)"
}

// insertOrLock inserts a row of cmsjobs_unique, or locks the one that has its name until the
// transaction ends. MySQL's INSERT IGNORE would lock by halves, with others: of two who then
// want the row for themselves each waits for the other.
func (d dialect) insertOrLock(columns, values string) string {
	insert := "INSERT INTO cmsjobs_unique (" + columns + ") VALUES " + values
	if d.name == "mysql" {
		return insert + " ON DUPLICATE KEY UPDATE job_id = LAST_INSERT_ID(job_id)"
	}
	return insert + " ON CONFLICT (name) DO NOTHING"
}

// isNew says of the result of insertOrLock that the row was inserted. On MySQL a row that
// stays as it is counts as affected too, if the connection counts found rows; its job_id,
// which is 0 in none of another transaction, tells them apart.
func (d dialect) isNew(r sql.Result) (bool, error) {
	if d.name == "mysql" {
		row, err := r.LastInsertId()
		return row == 0, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}
