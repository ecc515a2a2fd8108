package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"
)

// tries is how often a transaction is repeated that a deadlock or a lock
// time-out undid.
const tries = 8

// InTx runs fn in a transaction at READ COMMITTED and commits it. It repeats the
// whole of it where the server says that it undid it: fn must start from the beginning each
// time. op says in errors what was being done.
func InTx(ctx context.Context, db *sqlx.DB, op string, fn func(*sqlx.Tx) error) error {
	return Retry(ctx, op, func() error { return attempt(ctx, db, fn) })
}

func attempt(ctx context.Context, db *sqlx.DB, fn func(*sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, isolation(db))
	if err != nil {
		return err
	}
	// A statement that failed leaves a transaction open on MySQL (1205 undoes the
	// statement only): it always ends here. After Commit this does nothing; its own
	// error says nothing new, as the server undoes the work of a lost connection.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Retry runs fn, which is a transaction by itself, and repeats it after a random
// wait while the server says that it undid it.
func Retry(ctx context.Context, op string, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil {
			return nil
		}
		if Classify(err) != RetryTransaction || try == tries {
			return fmt.Errorf("%s: %w", op, err)
		}
		wait := time.Duration(rand.Int64N(int64(5*time.Millisecond) << try))
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, errors.Join(ctx.Err(), err))
		case <-time.After(wait):
		}
	}
}

var readCommittedTx = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// isolation is what a transaction of a database that Connect opened must say to
// be at READ COMMITTED. The sessions of MySQL are; saying it again would cost a
// round trip. On PostgreSQL BEGIN itself says it; SQLite knows no levels.
func isolation(db *sqlx.DB) *sql.TxOptions {
	if Of(db).Name == PostgreSQL {
		return readCommittedTx
	}
	return nil
}

// Isolation is the same for a database that anybody opened: a session of MySQL is
// asked once for its level. Without an answer every transaction sets it.
func Isolation(ctx context.Context, db *sqlx.DB) *sql.TxOptions {
	if Of(db).Name != MySQL {
		return isolation(db)
	}
	var level string
	err := db.GetContext(ctx, &level, "SELECT @@transaction_isolation")
	if err != nil {
		err = db.GetContext(ctx, &level, "SELECT @@tx_isolation") // MariaDB before 11.1
	}
	if err == nil && level == "READ-COMMITTED" {
		return nil
	}
	return readCommittedTx
}
