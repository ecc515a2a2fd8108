package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// oneWriter has the write transactions of a process on one SQLite file stand in line. By
// itself SQLite asks for a file that another has after 1, 2, 5, … 100 ms again: the file
// is idle until then, and who asks at the right moment has it before who waits longer.
type oneWriter struct {
	dsn  string
	line chan struct{} // full while one of the process writes
}

// inLine opens a SQLite file whose writers stand in line.
func inLine(dsn string) *sqlx.DB {
	return sqlx.NewDb(sql.OpenDB(oneWriter{dsn, make(chan struct{}, 1)}), "sqlite")
}

func (c oneWriter) Driver() driver.Driver { return new(sqlite.Driver) }

func (c oneWriter) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(pooledConn)
	if !ok {
		return nil, fmt.Errorf("the driver's connections lack what the store rests on: %T", conn)
	}
	return &writerInLine{pooledConn: keptConn{full, map[string]driver.Stmt{}}, line: c.line}, nil
}

// writerInLine is a connection that stands in line before it writes.
type writerInLine struct {
	pooledConn
	line chan struct{}
	in   bool // it is in a write transaction
}

// enter waits until nobody else of the process writes, at most as long as SQLite itself
// waits for a lock: then SQLite may decide.
func (c *writerInLine) enter(ctx context.Context) (leave func(), err error) {
	t := time.NewTimer(busyTimeout)
	defer t.Stop()
	select {
	case c.line <- struct{}{}:
		return func() { <-c.line }, nil
	case <-t.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *writerInLine) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if o.ReadOnly {
		return c.pooledConn.BeginTx(ctx, o)
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := c.pooledConn.BeginTx(ctx, o)
	if err != nil {
		leave()
		return nil, err
	}
	c.in = true
	return &txInLine{tx, c, leave}, nil
}

// ExecContext stands in line for a statement that is its own transaction.
func (c *writerInLine) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result,
	error) {
	if c.in || !writes(query) {
		return c.pooledConn.ExecContext(ctx, query, args)
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.pooledConn.ExecContext(ctx, query, args)
}

// writes says that the statement changes rows. Others, as VACUUM INTO, may take long and
// keep no writer waiting.
func writes(query string) bool {
	verb, _, _ := strings.Cut(query, " ")
	switch strings.ToUpper(verb) {
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		return true
	}
	return false
}

// txInLine leaves the line when it ends.
type txInLine struct {
	driver.Tx
	c     *writerInLine
	leave func()
}

func (t *txInLine) end() {
	t.c.in = false
	t.leave()
}

func (t *txInLine) Commit() error {
	defer t.end()
	return t.Tx.Commit()
}

func (t *txInLine) Rollback() error {
	defer t.end()
	return t.Tx.Rollback()
}
