package jobs_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A run that takes too long is cut off wherever it is, mostly in a query, and
// its driver then speaks of a lost connection. It is the job's fault all the
// same: an attempt is charged, or the job would come again for ever. A
// connection that was lost by itself costs the job nothing.
func TestATimeOutIsTheJobsFault(t *testing.T) {
	for name, c := range map[string]struct {
		attempts  int
		handler   func(context.Context) error
		outcome   string
		charged   int
		remaining int
		says      string
	}{
		"in a query": {2, func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("reading posts: %w", driver.ErrBadConn)
		}, "retried", 1, 1, "the job ran longer than it may: 20ms (reading posts"},
		"in a query, the last attempt": {1, func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("reading posts: %w", driver.ErrBadConn)
		}, "failed", 1, 0, "the job ran longer than it may: 20ms (reading posts"},
		"the connection alone": {2, func(context.Context) error {
			return fmt.Errorf("reading posts: %w", driver.ErrBadConn)
		}, "released", 0, 1, "reading posts"},
	} {
		t.Run(name, func(t *testing.T) {
			db := runOnce(t, jobs.Policy{MaxAttempts: c.attempts, Timeout: 20 * time.Millisecond,
				Backoff: jobs.Fixed(time.Hour)}, time.Now, c.handler)
			var outcome, says string
			if err := db.QueryRow("SELECT outcome, error FROM cmsjobs_runs").Scan(&outcome, &says); err != nil {
				t.Fatal(err)
			}
			if outcome != c.outcome || !strings.Contains(says, c.says) {
				t.Errorf("%s: %q; want %s: %q", outcome, says, c.outcome, c.says)
			}
			var remaining, charged int
			if err := db.QueryRow("SELECT COUNT(*), COALESCE(MAX(attempts), 1) FROM jobs").Scan(&remaining,
				&charged); err != nil {
				t.Fatal(err)
			}
			if remaining != c.remaining || charged != c.charged {
				t.Errorf("%d jobs left with %d attempts charged, want %d with %d", remaining, charged, c.remaining,
					c.charged)
			}
		})
	}
}

// A row may ask for less time than its type has, not for more: it comes from
// somebody else, and would hold a slot for as long as it likes.
func TestARowCannotLengthenItsTimeOut(t *testing.T) {
	policy := jobs.Policy{Timeout: 5 * time.Second}
	for row, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Second: time.Second,
		time.Hour: 5 * time.Second} {
		if got := policy.RunTimeout(row); got != want {
			t.Errorf("a row that asks for %v gets %v, want %v", row, got, want)
		}
	}
	s := newSite(t, jobstest.SQLite)
	s.kind.Policy = jobs.Policy{Timeout: 50 * time.Millisecond}
	s.run = func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Error("a run goes on past its type's time")
		}
		return ctx.Err()
	}
	s.MustExec(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default',
		'{"type":"test.sql","timeout":3600}', 0, 1, 1)`)
	s.runs(t)
	s.charged(t, 1, 0, "retried")
}

// A process that is paused between its claim and the handler's first line does
// not begin the job when it wakes: it is another's by then. The clock jumps past
// the lease at each of its readings in turn, until it is so late that two jobs
// were begun before: how many readings come first differs from run to run.
func TestAJobIsNotBegunPastItsLease(t *testing.T) {
	begun := 0
	for jump := int64(3); begun < 2 && jump <= 60; jump++ { // two readings come before the claim
		base, read := time.Now(), atomic.Int64{}
		now := func() time.Time {
			if read.Add(1) >= jump {
				return base.Add(2 * time.Hour)
			}
			return base
		}
		runOnce(t, jobs.Policy{}, now, func(context.Context) error {
			begun++
			if read.Load() >= jump {
				t.Errorf("begun though the clock jumped at reading %d of %d", jump, read.Load())
			}
			return nil
		})
	}
	if begun < 2 {
		t.Errorf("begun %d times: the test shows nothing", begun)
	}
}

// runOnce lets a worker run one job of a type with that policy and handler, and
// returns the database as it then is.
func runOnce(t *testing.T, policy jobs.Policy, now func() time.Time,
	handler func(context.Context) error) *jobstest.Database {
	t.Helper()
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, kind := jobs.NewRegistry(), jobs.Kind[struct{}]{Name: "test.once", Policy: policy}
	jobs.Handle(registry, kind, func(ctx context.Context, _ jobs.Job, _ struct{}) error { return handler(ctx) })
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), kind.New(struct{}{})); err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: now, Slots: 1, Once: true,
		Grace: time.Minute, Lease: time.Hour, DatabaseTrouble: database.Outage})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
