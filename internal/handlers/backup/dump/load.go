package dump

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// maxStatement bounds what a restore holds of one statement: the largest
// packet that servers take.
const maxStatement = 1 << 30

// LoadOptions choose how a dump is restored.
type LoadOptions struct {
	// Workers insert rows at the same time; 0 means 4.
	Workers int
	// DropDefiners makes the restoring user the definer of views and routines.
	DropDefiners bool
}

// Loader restores the pieces of a MySQL dump into a database: rows on several
// connections at once, everything else on one, in order.
type Loader struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	pool    *sql.DB
	conn    *sql.Conn
	options LoadOptions

	only    func(part Part, statement []byte) bool
	split   *Splitter
	part    Part
	table   string
	inserts chan string
	pending sync.WaitGroup // INSERTs that are not done
	workers sync.WaitGroup
}

// NewLoader connects to the database that the DSN names.
func NewLoader(ctx context.Context, dsn string, o LoadOptions) (*Loader, error) {
	pool, _, err := Connect(dsn)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = 4
	}
	l := &Loader{pool: pool, options: o, inserts: make(chan string)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	if l.conn, err = loadingConn(ctx, pool); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting for the restore: %w", err), pool.Close())
	}
	l.split = l.splitter()
	for range o.Workers {
		l.workers.Go(l.work)
	}
	return l, nil
}

func (l *Loader) splitter() *Splitter { return NewSplitter(maxStatement, l.statement) }

// loadingConn is a connection with the settings that a dump begins with.
func loadingConn(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(settings), "\n") {
		if _, err := conn.ExecContext(ctx, strings.TrimSuffix(statement, ";")); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

func (l *Loader) work() {
	conn, err := loadingConn(l.ctx, l.pool)
	if err != nil {
		l.cancel(fmt.Errorf("connecting for the restore: %w", err))
	} else {
		defer conn.Close()
	}
	for statement := range l.inserts {
		if l.ctx.Err() == nil {
			if _, err := conn.ExecContext(l.ctx, statement); err != nil {
				l.cancel(describe(statement, err))
			}
		}
		l.pending.Done()
	}
}

func describe(statement string, err error) error {
	return fmt.Errorf("restoring %.80q: %w", statement, err)
}

// Load restores one piece. Pieces come in the order of the dump.
func (l *Loader) Load(part Part, table string, piece []byte) error {
	if part != l.part {
		if err := l.split.Close(); err != nil {
			return err
		}
		l.split = l.splitter()
	}
	if table != l.table && table == "" {
		l.pending.Wait() // what follows the tables needs their rows
	}
	l.part, l.table = part, table
	if _, err := l.split.Write(piece); err != nil {
		return l.err(err)
	}
	return nil
}

// Only lets through the statements that wanted accepts. It is called before
// the first piece: a statement may be handed over later than its piece came.
func (l *Loader) Only(wanted func(part Part, statement []byte) bool) { l.only = wanted }

// err prefers the first error of a worker.
func (l *Loader) err(err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

func (l *Loader) statement(statement []byte) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if l.only != nil && !l.only(l.part, statement) {
		return nil
	}
	if l.table != "" && bytes.HasPrefix(statement, []byte("INSERT ")) {
		l.pending.Add(1)
		l.inserts <- string(statement)
		return nil
	}
	if l.options.DropDefiners && l.table == "" {
		statement = Definer.ReplaceAll(statement, nil)
	}
	if _, err := l.conn.ExecContext(l.ctx, string(statement)); err != nil {
		return describe(string(statement), err)
	}
	return nil
}

// Close waits for the last rows. It reports a dump that ends too early, if
// nothing else went wrong before.
func (l *Loader) Close() error {
	err := l.split.Close()
	close(l.inserts)
	l.workers.Wait()
	err = l.err(err)
	l.cancel(nil)
	return errors.Join(err, l.conn.Close(), l.pool.Close())
}
