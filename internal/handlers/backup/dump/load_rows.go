package dump

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
)

const (
	// waiting bounds the bytes of the INSERTs that wait or run, of all workers. While
	// a large table still has so much to do, the next one begins.
	waiting = 16 << 20
	// queued bounds the number of those of a worker.
	queued = 64
	// batch is how many a worker commits at once: a commit waits for the disk.
	batch = 16
)

// rowSettings are what a worker needs besides: it commits itself, and checks
// what is unique, without which MariaDB fills the tables of a longer
// transaction by temporary files, in twice the time.
var rowSettings = []string{"SET autocommit = 0", "SET unique_checks = 1"}

// insert is one statement for a worker. A server with GTIDs refuses one that writes
// rows without transactions within a transaction that writes others: it is alone.
type insert struct {
	statement string
	texts     []any // for its placeholders
	alone     bool
	names     string // the character set of its texts
	bytes     int64  // of the Loader's memory
}

// row hands an INSERT to the worker of its table.
func (l *Loader) row(statement []byte) error {
	raw := l.raw != nil && bytes.HasPrefix(statement, l.raw)
	if statement = l.staged(statement); statement == nil {
		return nil
	}
	size := min(int64(len(statement)), waiting)
	if err := l.memory.Acquire(l.ctx, size); err != nil {
		return l.err(err)
	}
	one := insert{alone: l.alone, names: dumpNames, bytes: size}
	if raw {
		one.names = rawNames
		one.statement, one.texts = withoutLongTexts(statement)
	} else {
		one.statement = string(statement)
	}
	l.pending.Add(1)
	l.inserts[l.turn] <- one
	return nil
}

// work inserts what it is sent. Nothing stays uncommitted while it waits.
func (l *Loader) work(inserts <-chan insert) {
	conn, err := l.rowConn()
	if err != nil {
		l.cancel(fmt.Errorf("connecting for the restore: %w", err))
	} else {
		defer conn.Close()
	}
	open, names := 0, dumpNames
	for one := range inserts {
		if one.alone && open > 0 {
			l.insert(conn, "COMMIT")
		}
		if one.names != names {
			names = one.names
			l.insert(conn, "SET NAMES "+names)
		}
		l.insert(conn, one.statement, one.texts...)
		l.memory.Release(one.bytes)
		if open++; open == batch || len(inserts) == 0 || one.alone {
			l.insert(conn, "COMMIT")
			l.pending.Add(-open)
			open = 0
		}
	}
}

func (l *Loader) rowConn() (*sql.Conn, error) {
	conn, err := loadingConn(l.ctx, l.pool)
	if err != nil {
		return nil, err
	}
	for _, statement := range rowSettings {
		if _, err := conn.ExecContext(l.ctx, statement); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// insert runs a worker's statement, unless something failed before.
func (l *Loader) insert(conn *sql.Conn, statement string, texts ...any) {
	if l.ctx.Err() != nil {
		return
	}
	if err := l.execute(conn, statement, texts); err != nil {
		l.cancel(describe(statement, err))
	}
}

// execute sends texts as they are: as arguments of Exec the driver would write them
// into the statement again.
func (l *Loader) execute(conn *sql.Conn, statement string, texts []any) (err error) {
	if len(texts) == 0 {
		_, err = conn.ExecContext(l.ctx, statement)
		return err
	}
	prepared, err := conn.PrepareContext(l.ctx, statement)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prepared.Close()) }()
	_, err = prepared.ExecContext(l.ctx, texts...)
	return err
}
