package sqlstore

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

// Class says what an error of the database means for whoever met it.
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
	// StopClaiming: the database needs a person (disk full, rights or tables missing).
	StopClaiming
	// Other is an error that the database reports and this table does not name.
	Other
)

// String is the class's name in logs.
func (c Class) String() string {
	return [...]string{"not the database", "retry the transaction", "connection lost, outcome unknown", "connect elsewhere", "the job's fault", "stop claiming", "other"}[c]
}

// Trouble says that the error is the database's and not the job's: no attempt
// is charged for it.
func (c Class) Trouble() bool {
	return c == RetryTransaction || c == Unknown || c == Elsewhere || c == StopClaiming
}

// mysqlClasses are the server's and client's error numbers
// (https://mariadb.com/kb/en/mariadb-error-code-reference/; 8022 and 9007 are TiDB's).
var mysqlClasses = map[Class][]uint16{
	RetryTransaction: {1213, 1205, 1020, 1047, 8022, 9007},
	Unknown:          {2006, 2013, 1927, 1053, 1317, 1158, 1159, 1160, 1161, 1969, 3024},
	Elsewhere:        {1290, 1792, 1836, 1129, 1040, 1203, 1226},
	JobsFault:        {1264, 1366, 1406, 1292, 1153, 3140, 1300, 3819, 4025},
	StopClaiming:     {1114, 1021, 28, 1044, 1045, 1142, 1143, 1146, 1054, 1049, 167, 1467},
}

// postgresClasses are SQLSTATEs, or their first two characters
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var postgresClasses = map[Class][]string{
	RetryTransaction: {"40001", "40P01", "55P03"},
	Unknown:          {"08", "57P01", "57P02", "57P05", "57014", "25P03"},
	Elsewhere:        {"25006", "53300", "57P03", "53200"},
	JobsFault:        {"22", "23502", "23514"},
	StopClaiming:     {"53100", "42501", "42P01", "42703", "28", "3D000", "58030"},
}

// sqliteClasses are primary result codes (https://sqlite.org/rescode.html).
var sqliteClasses = map[Class][]int{
	RetryTransaction: {5, 6},          // BUSY, LOCKED
	Unknown:          {9, 10},         // INTERRUPT, IOERR
	Elsewhere:        {8, 15},         // READONLY, PROTOCOL
	JobsFault:        {18, 20},        // TOOBIG, MISMATCH
	StopClaiming:     {13, 14, 11, 3}, // FULL, CANTOPEN, CORRUPT, PERM
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
		return StopClaiming
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
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network),
		strings.HasSuffix(err.Error(), "conn closed"), strings.HasSuffix(err.Error(), "bad connection"): // the drivers' own, which COMMIT lets through
		return Unknown
	}
	return NotDatabase
}

// errConnect is in the errors of connecting to MySQL, which are else those of
// any network.
var errConnect = errors.New("connecting to the database")

// Outage says that an error which a handler returned is the database's fault,
// so that the job is not charged for it. A handler has files and connections
// of its own: where Classify, which is asked about calls of the database only,
// takes a lost connection for the database's, Outage wants the name of a
// driver on it.
func Outage(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &my) || errors.As(err, &pg) || errors.As(err, &lite) || errors.As(err, &connect) {
		return Classify(err).Trouble()
	}
	return errors.Is(err, errConnect) || errors.Is(err, errServerConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, mysql.ErrInvalidConn)
}

// SaysReadOnly says that a write was refused because the server, or SQLite's
// file, takes none.
func SaysReadOnly(err error) bool {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	return errors.Is(err, ErrReadOnly) || errors.As(err, &pg) && pg.Code == "25006" || errors.As(err, &lite) && lite.Code()&0xff == 8
}

// SaysFull says that a write found no space on the database's disk.
func SaysFull(err error) bool {
	var my *mysql.MySQLError
	var pg *pgconn.PgError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &my):
		return my.Number == 1114 || my.Number == 1021 || my.Number == 28
	case errors.As(err, &pg):
		return pg.Code == "53100"
	case errors.As(err, &lite):
		return lite.Code()&0xff == 13
	}
	return false
}

// duplicate says that a unique key refused a row.
func duplicate(err error) bool {
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
