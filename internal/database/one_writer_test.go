package database

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

func openLined(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := Connect(t.Context(), ConnectOptions{DSN: "sqlite:" + filepath.Join(t.TempDir(), "cms.sqlite"),
		MaxConnections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.MustExec("CREATE TABLE k (n INT)")
	db.MustExec("INSERT INTO k (n) VALUES (0)")
	return db
}

// Two writers of a process take turns. By SQLite's own schedule one of them writes on and on
// until the other, which waits, asks at the right moment.
func TestWritersOfSQLiteTakeTurns(t *testing.T) {
	db := openLined(t)
	var turns atomic.Int64
	write := func(ctx context.Context) error {
		return InTx(ctx, db, "writing", func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE k SET n = n + 1")
			return err
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		for ctx.Err() == nil {
			if err := write(context.WithoutCancel(ctx)); err != nil {
				ended <- err
				return
			}
			turns.Add(1)
		}
		ended <- nil
	}()
	const writes = 30
	var passed int64
	for range writes {
		before := turns.Load()
		if err := write(ctx); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(ctx, "UPDATE k SET n = n + 1"); err != nil {
			t.Error(err)
		}
		passed += turns.Load() - before
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if passed < writes/2 || passed > 6*writes {
		t.Errorf("another wrote %d times while this one wrote %d times", passed, 2*writes)
	}
	var n int64
	if err := db.Get(&n, "SELECT n FROM k"); err != nil || n != 2*writes+turns.Load() {
		t.Errorf("%d writes, %v; want %d", n, err, 2*writes+turns.Load())
	}
}

// Who waits in line hears of the end of its context; readers wait for nobody, and a
// transaction that ends in whatever way lets the next one in.
func TestTheLineOfSQLiteIsLeft(t *testing.T) {
	db := openLined(t)
	for name, end := range map[string]func(*sqlx.Tx) error{
		"commit":   func(tx *sqlx.Tx) error { return tx.Commit() },
		"rollback": func(tx *sqlx.Tx) error { return tx.Rollback() },
	} {
		tx := db.MustBegin()
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for what, write := range map[string]func() error{
			"a transaction": func() error { _, err := db.BeginTxx(soon, nil); return err },
			"a statement":   func() error { _, err := db.ExecContext(soon, "DELETE FROM k WHERE n < 0"); return err },
		} {
			if err := write(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s beside another: %v", what, err)
			}
		}
		cancel()
		var n int
		if err := db.GetContext(t.Context(), &n, "SELECT n FROM k"); err != nil {
			t.Errorf("a reader beside a writer: %v", err)
		}
		reads, err := db.BeginTxx(t.Context(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatalf("a transaction that reads, beside a writer: %v", err)
		}
		if err := errors.Join(reads.Rollback(), end(tx)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		db.MustExec("UPDATE k SET n = n + 1")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	if _, err := db.BeginTxx(cancelled, nil); err != nil {
		t.Fatal(err)
	}
	cancel() // database/sql rolls it back
	next, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := db.ExecContext(next, "UPDATE k SET n = n + 1"); err != nil {
		t.Errorf("after a transaction whose context ended: %v", err)
	}
}
