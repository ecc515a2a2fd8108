package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A job that waits for a slot of the process is not begun by a stop, and costs no
// attempt.
func TestAJobThatWaitsForItsTurnIsReleasedByAStop(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, kind := jobs.NewRegistry(), jobs.Kind[struct{}]{Name: "test.turn"}
	var began atomic.Int64
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, struct{}) error { began.Add(1); return nil })
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), kind.New(struct{}{}), kind.New(struct{}{})); err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{}, 8)
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Slots: 2, Prefetch: 4,
		Grace: time.Minute, Lease: time.Hour, Turn: func(ctx context.Context) (func(), error) {
			waits <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range 2 {
		select {
		case <-waits:
		case <-time.After(time.Minute):
			t.Fatal("no job asked for its turn")
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil || began.Load() != 0 {
			t.Fatalf("the worker ended with %v after %d runs", err, began.Load())
		}
	case <-time.After(time.Minute):
		t.Fatal("the worker waits for a turn although it was asked to stop")
	}
	var free int
	if err := db.Get(&free, "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0"); err != nil ||
		free != 2 {
		t.Errorf("%d of 2 jobs are back, uncounted (%v)", free, err)
	}
}
