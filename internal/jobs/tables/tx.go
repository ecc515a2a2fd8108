package tables

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Tx is a transaction of the caller's: *sql.Tx and *sqlx.Tx fit.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Transaction is one transaction: main on the database of jobs, own on the one of our
// tables. They are the same unless Options.OwnDB is set.
type Transaction struct{ Main, Own Tx }

// InTx runs fn in a transaction at READ COMMITTED and commits it. It repeats
// the whole of it, after a random wait, when the database says that it undid
// it; so fn must start from the beginning each time.
func (s *Tables) InTx(ctx context.Context, op string, fn func(Transaction) error) error {
	return database.Retry(ctx, op, func() error { return s.attemptTx(ctx, fn) })
}

func (s *Tables) attemptTx(ctx context.Context, fn func(Transaction) error) (err error) {
	main, err := s.Begin(ctx, s.DB)
	if err != nil {
		return err
	}
	t, own := Transaction{main, main}, (*sqlx.Tx)(nil)
	if s.OwnDB != s.DB {
		if own, err = s.Begin(ctx, s.OwnDB); err != nil {
			return errors.Join(err, main.Rollback())
		}
		t.Own = own
	}
	// A statement that failed leaves a transaction open on MySQL (1205 undoes
	// the statement only): it always ends here.
	defer func() {
		if err != nil {
			Rollback(main)
			if own != nil {
				Rollback(own)
			}
		}
	}()
	if err = fn(t); err != nil {
		return err
	}
	if err = main.Commit(); err != nil {
		return err
	}
	// The jobs are settled from here on. Where our tables lie in another
	// database, a crash between the two commits costs a line of history.
	if own != nil {
		return own.Commit()
	}
	return nil
}

// Rollback ends a failed transaction. Its own error says nothing new: the
// connection is gone, and the server undoes the work by itself.
func Rollback(t *sqlx.Tx) { _ = t.Rollback() }

// Begin starts a transaction at READ COMMITTED.
func (s *Tables) Begin(ctx context.Context, db *sqlx.DB) (*sqlx.Tx, error) {
	s.Asked.Add(2) // BEGIN, and COMMIT or ROLLBACK
	return db.BeginTxx(ctx, s.TxOptions)
}

// Statements is how many statements the store has asked of its databases since
// it was opened; those of other parts of the process are not among them.
func (s *Tables) Statements() int64 { return s.Asked.Load() }

// Exec runs one statement and says how many rows it found.
func (s *Tables) Exec(ctx context.Context, q Tx, statement string, args ...any) (int64, error) {
	r, err := s.exec(ctx, q, statement, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (s *Tables) exec(ctx context.Context, q Tx, statement string, args []any) (sql.Result, error) {
	s.Asked.Add(1)
	return q.ExecContext(ctx, sqlx.Rebind(s.Dialect.Bind, statement), args...)
}

// InsertOrLock inserts one row, or locks the row that has its key: see
// database.Dialect.InsertOrLock. It says whether the row was inserted.
func (s *Tables) InsertOrLock(ctx context.Context, q Tx, table, columns, values, number string, args ...any) (bool,
	error) {
	r, err := s.exec(ctx, q, s.Dialect.InsertOrLock(table, columns, values, number), args)
	if err != nil {
		return false, err
	}
	return s.Dialect.IsNew(r)
}

// Query calls scan for each row.
func (s *Tables) Query(ctx context.Context, q Tx, scan func(*sql.Rows) error, statement string, args ...any) error {
	s.Asked.Add(1)
	if s.Watch != nil {
		s.Watch(statement, args)
	}
	rows, err := q.QueryContext(ctx, sqlx.Rebind(s.Dialect.Bind, statement), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// QueryRow reads a single row; found is false when there is none.
func (s *Tables) QueryRow(ctx context.Context, q Tx, into []any, statement string, args ...any) (found bool,
	err error) {
	err = s.Query(ctx, q, func(r *sql.Rows) error {
		found = true
		return r.Scan(into...)
	}, statement, args...)
	return found, err
}
