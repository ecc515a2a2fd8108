package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// givenBack is a store that tells when a run is released.
type givenBack struct {
	*queue.Store
	told chan struct{}
}

func (s *givenBack) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	for _, e := range ends {
		if e.Outcome == jobs.Released {
			close(s.told)
		}
	}
	return s.Store.Settle(ctx, ends)
}

// stopWhileRunning runs one job with handler, tells the worker to stop while
// the handler is at it, and returns how the worker ended and its table.
func stopWhileRunning(t *testing.T, stopTimeout time.Duration, handler func(context.Context, *givenBack) error) (
	*jobstest.Database, error) {
	t.Helper()
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, source := jobs.NewRegistry(), &givenBack{told: make(chan struct{})}
	kind := jobs.Kind[struct{}]{Name: "test.stop"}
	started := make(chan struct{})
	jobs.Handle(registry, kind, func(ctx context.Context, _ jobs.Job, _ struct{}) error {
		close(started)
		return handler(ctx, source)
	})
	var err error
	if source.Store, err = queue.Open(t.Context(), db.DB, tables.Options{Registry: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Enqueue(t.Context(), kind.New(struct{}{})); err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: source, Registry: registry, Now: time.Now, Slots: 2,
		Grace: time.Minute, StopTimeout: stopTimeout, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-started
	stop()
	w.Abort() // the grace is over
	return db, <-ended
}

// A worker that is asked to stop begins nothing more, however long the grace in
// which what it runs goes on.
func TestAWorkerThatIsToldToStopBeginsNothing(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, kind := jobs.NewRegistry(), jobs.Kind[int]{Name: "test.stop"}
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	second := make(chan struct{})
	jobs.Handle(registry, kind, func(ctx context.Context, _ jobs.Job, n int) error {
		if n == 2 {
			close(second)
			return nil
		}
		stop()
		if _, err := store.Enqueue(ctx, kind.New(2)); err != nil {
			return err
		}
		select { // long enough for a worker that would go on
		case <-second:
			t.Error("a job began after the worker was asked to stop")
		case <-time.After(time.Second):
		}
		return nil
	})
	if _, err := store.Enqueue(ctx, kind.New(1)); err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Slots: 2,
		Grace: time.Minute, Lease: time.Hour,
		PollMin: 10 * time.Millisecond, PollMax: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
	var left int
	if err := db.Get(&left, "SELECT COUNT(*) FROM jobs WHERE attempts = 0 AND reserved_at IS NULL"); err != nil ||
		left != 1 {
		t.Errorf("%d jobs wait, %v; want the second", left, err)
	}
}

// After the grace a handler is asked to stop. What it still does then lies
// before the job is released, so another worker cannot be at it beside.
func TestAJobIsGivenBackAfterItsHandlerHasReturned(t *testing.T) {
	var early atomic.Bool
	db, err := stopWhileRunning(t, time.Minute, func(ctx context.Context, source *givenBack) error {
		<-ctx.Done()
		select { // long enough for a worker that would not wait
		case <-source.told:
			early.Store(true)
		case <-time.After(300 * time.Millisecond):
		}
		return ctx.Err()
	})
	if err != nil || early.Load() {
		t.Errorf("%v, released while the handler ran: %v", err, early.Load())
	}
	var n int
	if err := db.Get(&n, "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0"); err != nil || n != 1 {
		t.Errorf("%d jobs wait uncounted, %v; want 1", n, err)
	}
}

// A handler that does not stop goes on until its process is gone: its job is
// released uncounted, and not due before.
func TestAJobIsNotDueWhileItsHandlerDoesNotStop(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	db, err := stopWhileRunning(t, 50*time.Millisecond, func(context.Context, *givenBack) error {
		<-release
		return nil
	})
	if !errors.Is(err, jobs.ErrStuck) {
		t.Errorf("the worker ended with %v", err)
	}
	var n int
	if err := db.Get(&n, "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0 AND available_at > "+
		"unixepoch() + 1800"); err != nil || n != 1 {
		t.Errorf("%d jobs wait uncounted for the length of a lease, %v; want 1", n, err)
	}
}
