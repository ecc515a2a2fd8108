package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// ConnectOptions say which database, and how.
type ConnectOptions struct {
	// DSN is mysql://user:pass@host:3306/db, postgres://…, sqlite:path, file:path,
	// or go-sql-driver's own user:pass@tcp(host:3306)/db.
	DSN string
	// MaxConnections at once: 16. One of them is always left for heartbeats and
	// renewals, as a full pool waits. On MySQL one more of them is kept for
	// settlements, where there are three or more (packets.go).
	MaxConnections int
	// TimeZone of the session: +00:00. It matters for tables whose times are wall
	// clocks; then it must be the zone of the other programs that write them.
	TimeZone string
	// KeepJournal leaves a SQLite file's journal as it is. Otherwise the file gets a
	// write-ahead log, which stays in it for every program.
	KeepJournal bool

	pooled bool // PostgreSQL is behind a pooler that takes no time-outs: see refusesTimeouts
}

// The time-outs of a connection: a swallowed packet must not hold a worker for
// ever (the driver's own default), and a lock not for longer than a lease.
const (
	dialTimeout  = 3 * time.Second
	readTimeout  = 15 * time.Second
	lifetime     = 5 * time.Minute
	lockWaitSecs = 3
	// busyTimeout is SQLite's wait for its one writer. The first to ask
	// gets the file, so on a busy disk a writer may wait for long.
	busyTimeout = 20 * time.Second
)

// Connect opens a database and asks it to answer. Its errors say what to fix
// and never hold a password.
func Connect(ctx context.Context, o ConnectOptions) (*sqlx.DB, error) {
	if o.MaxConnections <= 0 {
		o.MaxConnections = 16
	}
	if o.TimeZone == "" {
		o.TimeZone = "+00:00"
	}
	db, where, err := open(o)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(o.MaxConnections)
	db.SetMaxIdleConns(o.MaxConnections)
	db.SetConnMaxLifetime(lifetime) // a new name resolution now and then: failover
	switch err := db.PingContext(ctx); {
	case refusesTimeouts(err) && !o.pooled:
		o.pooled = true
		db.Close()
		return Connect(ctx, o)
	case err != nil:
		return nil, errors.Join(Explain("connecting to "+where, err), db.Close())
	}
	return db, nil
}

// open chooses the driver by the DSN's form. where names the server without
// its password.
func open(o ConnectOptions) (db *sqlx.DB, where string, err error) {
	scheme, rest, isURL := strings.Cut(o.DSN, ":")
	switch {
	case o.DSN == "":
		return nil, "", errors.New("no database is configured: give a DSN such as " +
			"mysql://user:password@localhost:3306/cms")
	case isURL && (scheme == "mysql" || scheme == "mariadb"):
		config, err := mysqlURL(o.DSN)
		if err != nil {
			return nil, "", err
		}
		return OpenMySQL(config, o)
	case isURL && (scheme == "postgres" || scheme == "postgresql" || scheme == "pgsql"):
		return openPostgres("postgres:"+rest, o)
	case isURL && scheme == "sqlite":
		return openSQLite(strings.TrimPrefix(rest, "//"), o.KeepJournal)
	case isURL && scheme == "file":
		return openSQLite(o.DSN, o.KeepJournal)
	}
	config, err := mysql.ParseDSN(o.DSN)
	if err != nil { // the driver's error may repeat the password
		return nil, "", errors.New("the database's DSN is none of mysql://user:password@host:3306/db, postgres://…, " +
			"sqlite:path, user:password@tcp(host:3306)/db")
	}
	return OpenMySQL(config, o)
}

func mysqlURL(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("the database's URL cannot be read: write special characters of the password as %XX")
	}
	c := mysql.NewConfig()
	c.User, c.DBName = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	q := u.Query()
	if socket := q.Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	} else {
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		host := u.Hostname()
		if host == "" {
			host = "localhost"
		}
		c.Net, c.Addr = "tcp", net.JoinHostPort(host, port)
	}
	c.TLSConfig = q.Get("tls")
	return c, nil
}

// OpenMySQL sets what the store rests on, whatever the DSN says.
func OpenMySQL(c *mysql.Config, o ConnectOptions) (*sqlx.DB, string, error) {
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows, c.RejectReadOnly, c.InterpolateParams = true, false, true // mysqlConn names a read-only server
	c.MultiStatements = false
	c.Logger = &mysql.NopLogger{} // what it would print comes back as an error
	c.Timeout, c.ReadTimeout, c.WriteTimeout = dialTimeout, readTimeout, readTimeout
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	// mysqld before 5.7.20 and MariaDB before 11.1 know tx_isolation only; both
	// understand the SET statement that the store sends otherwise.
	c.Params["time_zone"] = "'" + strings.ReplaceAll(o.TimeZone, "'", "") + "'"
	c.Params["innodb_lock_wait_timeout"] = fmt.Sprint(lockWaitSecs)
	if err := c.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, "", fmt.Errorf("setting the connection's character set: %w", err)
	}
	BoundMySQL(c)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, "", errors.New("the database's DSN is refused by the driver: check host, port and tls")
	}
	packets, err := newPackets(c)
	if err != nil {
		return nil, "", errors.New("the database's DSN is refused by the driver: check host, port and tls")
	}
	return sqlx.NewDb(sql.OpenDB(packetConnector{readCommitted{BoundConnector(connector)}, packets}), "mysql"),
		fmt.Sprintf("%s as %s", c.Addr, c.User), nil
}

func openPostgres(dsn string, o ConnectOptions) (*sqlx.DB, string, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, "", errors.New("the database's URL cannot be read: it is postgres://user:password@host:5432/db, " +
			"special characters of the password as %XX")
	}
	// Of all that it takes to connect the dial alone is short: a server that starts a
	// process for each connection may be slow to greet while it has much to do.
	c.ConnectTimeout = readTimeout
	c.DialFunc = (&net.Dialer{Timeout: dialTimeout}).DialContext
	BoundPostgres(c)
	c.DialFunc = namedErrors(c.DialFunc)
	// Statements here differ in their number of rows; keeping each prepared
	// would cost more than it saves, and poolers do not like it. Those that are always the
	// same ask for it: see Plans.
	c.DefaultQueryExecMode, c.StatementCacheCapacity = pgx.QueryExecModeExec, maxPlans
	c.RuntimeParams["timezone"] = postgresZone(o.TimeZone)
	c.RuntimeParams["application_name"] = "cmsjobs"
	if !o.pooled {
		c.RuntimeParams["lock_timeout"] = fmt.Sprint(lockWaitSecs * 1000)
		c.RuntimeParams["statement_timeout"] = "60000"
		c.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	}
	return sqlx.NewDb(sql.OpenDB(BoundConnector(stdlib.GetConnector(*c))), "pgx"),
		fmt.Sprintf("%s:%d as %s", c.Host, c.Port, c.User), nil
}

// refusesTimeouts says that a pooler, as PgBouncer, does not pass on the session's time-outs. To
// set them later would set them for others, who get the same connection of the server.
func refusesTimeouts(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter")
}

// postgresZone reverses the sign, which POSIX counts westward.
func postgresZone(zone string) string {
	switch {
	case zone == "+00:00" || zone == "-00:00":
		return "UTC"
	case strings.HasPrefix(zone, "+"):
		return "<" + zone + ">-" + zone[1:]
	case strings.HasPrefix(zone, "-"):
		return "<" + zone + ">+" + zone[1:]
	}
	return zone
}

func openSQLite(path string, keepJournal bool) (*sqlx.DB, string, error) {
	file, query, _ := strings.Cut(strings.TrimPrefix(path, "file:"), "?")
	if file == "" {
		return nil, "", errors.New("the SQLite DSN names no file: write sqlite:/path/to/cms.sqlite")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, "", fmt.Errorf("reading the options of the SQLite DSN: %w", err)
	}
	values.Set("_txlock", "immediate")
	values.Del("_pragma")
	for _, pragma := range []string{fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)",
		"synchronous(FULL)", "foreign_keys(1)"} {
		if keepJournal && pragma == "journal_mode(WAL)" {
			continue
		}
		values.Add("_pragma", pragma)
	}
	return inLine("file:" + filepath.ToSlash(file) + "?" + values.Encode()), file, nil
}

// RollbackJournal gives a SQLite file the journal back that it had before Connect: one
// that is gone after each transaction. It fails while another program has the file open.
func RollbackJournal(ctx context.Context, dsn string) error {
	db, err := Connect(ctx, ConnectOptions{DSN: dsn, MaxConnections: 1, KeepJournal: true})
	if err != nil {
		return err
	}
	var mode string
	err = db.GetContext(ctx, &mode, "PRAGMA journal_mode=DELETE")
	if err == nil && mode != "delete" {
		err = fmt.Errorf("its journal is still %q", mode)
	}
	return errors.Join(err, db.Close())
}
