package lock

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func table(t *testing.T, e jobstest.Engine) *Table {
	t.Helper()
	return &Table{DB: jobstest.Migrated(t, e).DB, Logger: slog.New(slog.DiscardHandler)}
}

func TestALockIsHeldNamedAndGivenBack(t *testing.T) {
	for _, e := range jobstest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			locks := table(t, e)
			_, held, err := locks.Acquire(t.Context(), Request{Name: "backup", Purpose: "the backup x"})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = locks.Acquire(t.Context(), Request{Name: "backup", Purpose: "another"})
			var by *HeldError
			if !errors.As(err, &by) {
				t.Fatalf("a second one: %v", err)
			}
			host, _ := os.Hostname()
			if left := by.Expires.Sub(by.Started); by.Purpose != "the backup x" || !strings.Contains(by.Host, host) ||
				left < Lease || left > Lease+time.Minute {
				t.Errorf("%+v", by.Holder)
			}
			// A host's clock decides nothing: the database's is within a day of ours at most.
			if d := time.Since(by.Started); d > 24*time.Hour || d < -24*time.Hour {
				t.Errorf("started %s ago", d)
			}
			held.Release(t.Context())
			_, again, err := locks.Acquire(t.Context(), Request{Name: "backup", Purpose: "another"})
			if err != nil {
				t.Fatalf("after it was released: %v", err)
			}
			again.Remove(t.Context())
			if dead, err := locks.Dead(t.Context(), ""); len(dead) != 0 || err != nil {
				t.Errorf("%v, %v", dead, err)
			}
		})
	}
}

// A restore replaces the table of locks while it holds one.
func TestADurableLockOutlivesItsRow(t *testing.T) {
	locks := table(t, jobstest.SQLite)
	held, l, err := locks.Acquire(t.Context(), Request{Name: "backup", Purpose: "a restore", Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release(t.Context())
	locks.DB.MustExec("DELETE FROM cmsjobs_backup_locks")
	deadline := time.Now().Add(time.Minute)
	for {
		h, err := locks.Holder(t.Context(), "backup")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the row does not come back: %+v, %v", h, err)
		}
		if h.Purpose == "a restore" {
			break
		}
		time.Sleep(100 * time.Millisecond) // a renewal comes every few seconds
	}
	if held.Err() != nil {
		t.Error(context.Cause(held))
	}
}

func TestALockOfADeadHolderIsTakenAndTheOldOneIsTold(t *testing.T) {
	for _, e := range jobstest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			locks := table(t, e)
			first, lost, err := locks.Acquire(t.Context(), Request{Name: "scratch:a_b", Purpose: "a verification"})
			if err != nil {
				t.Fatal(err)
			}
			if dead, err := locks.Dead(t.Context(), "scratch:"); len(dead) != 0 || err != nil {
				t.Fatalf("a live one is dead: %v, %v", dead, err)
			}
			locks.DB.MustExec("UPDATE cmsjobs_backup_locks SET expires_at = started_at")
			if dead, err := locks.Dead(t.Context(), "scratch:"); len(dead) != 1 || err != nil ||
				dead[0].Purpose != "a verification" {
				t.Fatalf("%v, %v", dead, err)
			}
			_, second, err := locks.Acquire(t.Context(), Request{Name: "scratch:a_b", Purpose: "its successor"})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Release(t.Context())
			ctx, cancel := context.WithCancelCause(context.Background())
			if n, err := lost.expire(ctx, locks.clock()); n != 0 || err != nil {
				t.Errorf("the old holder renews the new one's: %d, %v", n, err)
			}
			cancel(nil)
			select {
			case <-first.Done():
			case <-time.After(time.Minute):
				t.Fatal("the old holder goes on")
			}
			if !errors.Is(context.Cause(first), ErrLost) {
				t.Error(context.Cause(first))
			}
			lost.Release(t.Context())
			if err := locks.Forget(t.Context(), "scratch:a_b"); err != nil {
				t.Fatal(err)
			}
			if h, err := locks.Holder(t.Context(), "scratch:a_b"); h.Purpose != "its successor" || err != nil {
				t.Errorf("a live lock was removed: %+v, %v", h, err)
			}
		})
	}
}
