package dump

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// session is one connection, which holds the snapshot.
type session struct {
	pool     *sql.DB
	conn     *sql.Conn
	database string
	server   string
	mariaDB  bool
	// castDouble says that the server knows CAST(… AS DOUBLE).
	castDouble bool
}

// Connect opens a pool to a MySQL database as dumps and restores need it:
// times as text, large packets, no reinterpretation of values. An empty
// database in the DSN is allowed.
func Connect(dsn string) (*sql.DB, *mysql.Config, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("the data source name is no MySQL DSN: %w", err)
	}
	c.ParseTime, c.MultiStatements, c.InterpolateParams = false, false, true
	c.MaxAllowedPacket = 1 << 30
	c.ReadTimeout, c.WriteTimeout = 0, 0 // a stall is the caller's to notice
	c.Loc = time.UTC
	c.Logger = silent{}
	if c.DialFunc == nil {
		c.DialFunc = dial
	}
	dialled := c.Clone() // c is the caller's to format
	database.BoundMySQL(dialled)
	connector, err := mysql.NewConnector(dialled)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(explained{database.BoundConnector(connector)}), c, nil
}

// explained says of a login that is refused what a person can do about it.
type explained struct{ driver.Connector }

func (e explained) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := e.Connector.Connect(ctx)
	if err != nil {
		return nil, database.Explain("connecting to the database", err)
	}
	return c, nil
}

// silent keeps the driver from writing to a global log: its errors are returned.
type silent struct{}

func (silent) Print(...any) {}

// readAhead is how much of an answer is taken from the network at once: the
// driver alone asks for a few KiB each time.
const readAhead = 64 << 10

// dial connects as the driver does, but reads ahead.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return bufferedConn{c, bufio.NewReaderSize(c, readAhead)}, nil
}

type bufferedConn struct {
	net.Conn
	ahead *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.ahead.Read(p) }

func open(ctx context.Context, dsn string) (*session, error) {
	pool, c, err := Connect(dsn)
	if err != nil {
		return nil, err
	}
	if c.DBName == "" {
		return nil, errors.Join(errors.New("the DSN names no database"), pool.Close())
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &session{pool: pool, conn: conn, database: c.DBName}, nil
}

func (s *session) close() {
	s.conn.Close()
	s.pool.Close()
}

var versionNumber = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)`)

// settle sets what the values of a session's answers depend on.
func (s *session) settle(ctx context.Context) error {
	err := s.conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.server)
	if err != nil {
		return err
	}
	s.mariaDB = IsMariaDB(s.server)
	s.castDouble = s.mariaDB || versionAtLeast(s.server, 8, 0, 17)
	limit := "max_execution_time" // milliseconds, of SELECTs
	if s.mariaDB {
		limit = "max_statement_time"
	}
	for _, statement := range []string{
		"SET NAMES utf8mb4",
		"SET SESSION time_zone = '+00:00'",
		"SET SESSION sql_mode = ''",
		"SET SESSION sql_quote_show_create = 1",
		"SET SESSION net_write_timeout = 3600, net_read_timeout = 3600, wait_timeout = 28800",
		"SET SESSION group_concat_max_len = 1048576",
		"SET SESSION " + limit + " = 0",
	} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func versionAtLeast(version string, want ...int) bool {
	m := versionNumber.FindStringSubmatch(version)
	for i, w := range want {
		if m == nil {
			return false
		}
		if have, _ := strconv.Atoi(m[i+1]); have != w {
			return have > w
		}
	}
	return true
}

// each runs a query by the text protocol and shows each row as the driver has
// it. The values are valid until visit returns.
func (s *session) each(ctx context.Context, query string, visit func(row []driver.Value) error) error {
	return s.conn.Raw(func(c any) (err error) {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, query, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		row := make([]driver.Value, len(rows.Columns()))
		for {
			switch err := rows.Next(row); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if err := visit(row); err != nil {
				return err
			}
		}
	})
}

// texts runs a query and returns its rows as strings; NULL is "".
func (s *session) texts(ctx context.Context, query string) ([][]string, error) {
	var all [][]string
	err := s.each(ctx, query, func(row []driver.Value) error {
		texts := make([]string, len(row))
		for i, v := range row {
			texts[i] = text(v)
		}
		all = append(all, texts)
		return nil
	})
	return all, err
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// IsMariaDB says whether a server that gives this version is a MariaDB.
func IsMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

// unqualify takes the database's own name from the defaults that MariaDB
// writes with it (nextval(`db`.`sequence`)), so that the dump restores into a
// database of any name.
func (s *session) unqualify(create string) string {
	for _, f := range []string{"nextval", "lastval"} {
		create = strings.ReplaceAll(create, f+"("+quoteName(s.database)+".", f+"(")
	}
	return create
}
