package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Class says what an error of the database means for its caller.
type Class int

// The classes of database errors.
const (
	// NotDatabase is any other error, nil included.
	NotDatabase Class = iota
	// RetryTransaction: nothing was written; the whole transaction may be
	// repeated at once.
	RetryTransaction
	// Unknown: the connection was lost. What was being written may have
	// happened or not.
	Unknown
	// Elsewhere: this server cannot serve now (read-only after a failover, too
	// many connections): connect again, later or to another.
	Elsewhere
	// JobsFault: the data that a job brought does not fit. Repeating does not help.
	JobsFault
	// StopClaiming: the server needs a person (disk full, file damaged, login refused).
	StopClaiming
	// Schema: the tables are not as the statement needs them: a right, a table or
	// a column is missing, or its numbers have run out. Our own statements stop
	// until that is fixed; a handler's own statement is its job's fault.
	Schema
	// TooSlow: the server ended the statement, which took longer than it lets
	// one. What was being written may have happened or not.
	TooSlow
	// Other is an error that the database reports and this table does not name.
	Other
)

// Trouble says of an error of the queue's own statements that the database is
// in the way, and no job.
func (c Class) Trouble() bool { return c.server() || c == Schema || c == TooSlow }

// server says that the error is the server's, whatever the statement was.
func (c Class) server() bool {
	return c == RetryTransaction || c == Unknown || c == Elsewhere || c == StopClaiming
}

// Unclear says that what was being written may have happened or not.
func (c Class) Unclear() bool { return c == Unknown || c == TooSlow }

// mysqlClasses are the server's and client's error numbers
// (https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html,
// https://mariadb.com/kb/en/mariadb-error-code-reference/; 8022 and 9007 are TiDB's).
var mysqlClasses = map[Class][]uint16{
	// 3100, 3101: a group's members disagree
	RetryTransaction: {1213, 1205, 1020, 1047, 3100, 3101, 8022, 9007},
	Unknown:          {2006, 2013, 1927, 1053, 1317, 1158, 1159, 1160, 1161, 4031}, // 4031: idle for too long
	Elsewhere:        {1290, 1792, 1836, 1129, 1040, 1203, 1226, 3032, 3168},       // 3032: offline mode
	JobsFault:        {1264, 1366, 1406, 1292, 1153, 3140, 3141, 3143, 3144, 1300, 3819, 4025},
	// A full or broken disk, and logins: wrong, socket only, no TLS, expired, locked.
	StopClaiming: {1114, 1021, 28, 1026, 1030, 3675, 1045, 1049, 1698, 3159, 1820, 1862, 3118, 4151},
	Schema:       {1044, 1142, 1143, 1146, 1054, 1227, 1356, 1370, 167, 1467},
	TooSlow:      {1969, 3024},
}

// postgresClasses are SQLSTATEs, or their first two characters
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var postgresClasses = map[Class][]string{
	RetryTransaction: {"40001", "40P01", "55P03"},
	Unknown:          {"08", "57P01", "57P02", "57P05", "25P03"},
	Elsewhere:        {"25006", "53300", "57P03", "53200"},
	JobsFault:        {"22", "23502", "23514"},
	StopClaiming:     {"53100", "28", "3D000", "58030"},
	Schema:           {"42501", "42P01", "42703", "3F000", "2200H"},
	TooSlow:          {"57014"},
}

// sqliteClasses are primary result codes (https://sqlite.org/rescode.html).
var sqliteClasses = map[Class][]int{
	RetryTransaction: {5, 6},          // BUSY, LOCKED
	Unknown:          {9, 10},         // INTERRUPT, IOERR
	Elsewhere:        {8, 15},         // READONLY, PROTOCOL
	JobsFault:        {18, 20},        // TOOBIG, MISMATCH
	StopClaiming:     {13, 14, 11, 3}, // FULL, CANTOPEN, CORRUPT, PERM
	Schema:           {23},            // AUTH
}

// sqliteConstraints are the extended codes of CHECK, NOT NULL, triggers and
// types: those of unique keys are not the data's alone.
var sqliteConstraints = []int{275, 1299, 1811, 3091}

// Classify says what err means. It knows the errors of MySQL, MariaDB, TiDB,
// PostgreSQL, SQLite and of broken connections, wrapped or not.
func Classify(err error) Class {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case err == nil:
		return NotDatabase
	case errors.As(err, &my):
		for class, numbers := range mysqlClasses {
			if slices.Contains(numbers, my.Number) {
				return class
			}
		}
		return Other
	case errors.As(err, &pg):
		return classifyPostgres(pg.Code)
	case errors.As(err, &lite):
		return classifySQLite(lite)
	}
	return classifyConnection(err)
}

func classifyPostgres(code string) Class {
	for _, length := range []int{5, 2} { // the exact code wins over its family
		for class, codes := range postgresClasses {
			if len(code) >= length && slices.Contains(codes, code[:length]) {
				return class
			}
		}
	}
	return Other
}

func classifySQLite(err *sqlite.Error) Class {
	if strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column") {
		return Schema
	}
	if slices.Contains(sqliteConstraints, err.Code()) {
		return JobsFault
	}
	for class, codes := range sqliteClasses {
		if slices.Contains(codes, err.Code()&0xff) {
			return class
		}
	}
	return Other
}

func classifyConnection(err error) Class {
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unknown
	case errors.As(err, &connect):
		return Elsewhere
	case errors.Is(err, errServerConn):
		return Unknown
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, mysql.ErrInvalidConn),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.As(err, &network),
		// the drivers' own, which COMMIT lets through
		strings.HasSuffix(err.Error(), "conn closed"), strings.HasSuffix(err.Error(), "bad connection"):
		return Unknown
	}
	return NotDatabase
}

// errConnect is in the errors of connecting to MySQL, which are else those of
// any network.
var errConnect = errors.New("connecting to the database")

// Outage says that an error which a handler returned is the server's trouble,
// so that the job is not charged for it. What a handler's statement itself is
// refused for (a right, table or column that is missing, its syntax, its data,
// a key) is the job's own: it would come again for ever. A handler has files
// and its own connections, too: where Classify, which is asked about calls
// of the database only, takes a lost connection for the database's, Outage
// wants the name of a driver on it.
func Outage(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, errConnect), errors.As(err, &connect): // no statement was asked yet
		return true
	case errors.As(err, &my), errors.As(err, &pg), errors.As(err, &lite):
		return Classify(err).server()
	}
	lost := []error{errServerConn, driver.ErrBadConn, sql.ErrConnDone, mysql.ErrInvalidConn}
	return slices.ContainsFunc(lost, func(known error) bool { return errors.Is(err, known) })
}

// Away says that the server cannot be reached, or serves nobody now: waiting may
// help. A wrong password or a missing table does not fix itself.
func Away(err error) bool {
	class := Classify(err)
	return class == Unknown || class == Elsewhere || class == RetryTransaction
}

// SaysReadOnly says that a write was refused because the server, or SQLite's
// file, takes none.
func SaysReadOnly(err error) bool {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	return errors.Is(err, ErrReadOnly) || errors.As(err, &pg) && pg.Code == "25006" || errors.As(err, &lite) &&
		lite.Code()&0xff == 8
}

// SaysFull says that a write found no space on the database's disk.
func SaysFull(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &my):
		// 1030 and 1026 are any error of a file, and name it.
		return slices.Contains([]uint16{1114, 1021, 28, 3675}, my.Number) ||
			my.Number == 1030 && strings.Contains(my.Message, "error 28") || my.Number == 1026 &&
			strings.Contains(my.Message, "errno: 28")
	case errors.As(err, &pg):
		return pg.Code == "53100"
	case errors.As(err, &lite):
		return lite.Code()&0xff == 13
	}
	return false
}

// IsDuplicate says that a unique key refused a row.
func IsDuplicate(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &my):
		return my.Number == 1062
	case errors.As(err, &pg):
		return pg.Code == "23505"
	case errors.As(err, &lite):
		return lite.Code() == 2067 || lite.Code() == 1555 // CONSTRAINT_UNIQUE, CONSTRAINT_PRIMARYKEY
	}
	return false
}
