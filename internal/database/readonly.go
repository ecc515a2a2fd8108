package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ErrReadOnly is in the errors of a server that takes no writes: after a
// failover, or because a person said so.
var ErrReadOnly = errors.New("the server is read-only")

// namedReadOnly turns the refusal of a read-only server into a bad connection,
// so that the next one may lead to a server that writes, as the driver's own
// rejectReadOnly does. Unlike it, the error keeps what the server said.
func namedReadOnly(err error) error {
	var my *mysql.MySQLError
	if !errors.As(err, &my) || errors.Is(err, driver.ErrBadConn) {
		return err
	}
	switch my.Number {
	case 1290: // other options are refused by this number, too
		if !strings.Contains(my.Message, "read") {
			return err
		}
	case 1792, 1836:
	default:
		return err
	}
	return fmt.Errorf("%w (%w): %w", ErrReadOnly, err, driver.ErrBadConn)
}

// fullConn is what the MySQL driver's connections can do; each ability that
// were hidden would cost a round trip a statement.
type fullConn interface {
	pooledConn
	driver.NamedValueChecker
}

// pooledConn is what the connections of every driver can do.
type pooledConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// mysqlConn is a connection whose errors name a read-only server.
type mysqlConn struct{ fullConn }

func (c mysqlConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.fullConn.ExecContext(ctx, query, args)
	return r, namedReadOnly(err)
}

func (c mysqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.fullConn.QueryContext(ctx, query, args)
	return rows, namedReadOnly(err)
}

func (c mysqlConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, o)
	if err != nil {
		return nil, namedReadOnly(err)
	}
	return mysqlTx{tx}, nil
}

func (c mysqlConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.fullConn.PrepareContext(ctx, query)
	if full, ok := stmt.(fullStmt); ok && err == nil {
		return mysqlStmt{full}, nil
	}
	return stmt, namedReadOnly(err)
}

type mysqlTx struct{ driver.Tx }

func (t mysqlTx) Commit() error { return namedReadOnly(t.Tx.Commit()) }

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type mysqlStmt struct{ fullStmt }

func (s mysqlStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.fullStmt.ExecContext(ctx, args)
	return r, namedReadOnly(err)
}

func (s mysqlStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.fullStmt.QueryContext(ctx, args)
	return rows, namedReadOnly(err)
}
