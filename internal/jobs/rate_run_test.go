package jobs_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A worker that polls once a minute begins the next jobs of a rate when it lets it, and
// meanwhile those of other types behind them.
func TestAWorkerKeepsARate(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	const starts, per, n = 5, 2 * time.Second, 20
	rated := jobs.Kind[json.RawMessage]{Name: "test.rated",
		Policy: jobs.Policy{Rates: []jobs.Rate{{Starts: starts, Per: per}}}}
	free := jobs.Kind[json.RawMessage]{Name: "test.free"}
	var mu sync.Mutex
	var begun []time.Time
	others := 0
	done, heard := make(chan struct{}), make(chan struct{}, 1)
	registry := jobs.NewRegistry()
	jobs.Handle(registry, rated, func(context.Context, jobs.Job, json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		if begun = append(begun, time.Now()); len(begun) == n {
			close(done)
		}
		return nil
	})
	jobs.Handle(registry, free, func(context.Context, jobs.Job, json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		if others++; len(begun) > starts*2 {
			t.Errorf("a job of another type waited for %d of the rate", len(begun))
		}
		return nil
	})
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry, Wake: func(string) {
		select {
		case heard <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 10 {
		spec := rated.New(nil)
		if i >= n {
			spec = free.New(nil)
		}
		if _, err := store.Enqueue(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Slots: 4, Prefetch: 16, Wake: heard,
		PollMin: time.Minute, PollMax: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(40 * time.Second):
		t.Error("the rate's jobs were not found when it let them begin")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if others != 10 {
		t.Errorf("%d of 10 jobs of another type ran", others)
	}
	for i := starts; i < len(begun); i++ { // whole seconds, and the time from the claim to the handler
		if apart := begun[i].Sub(begun[i-starts]); apart < per-1500*time.Millisecond {
			t.Errorf("start %d came %v after the one %d before it", i, apart, starts)
		}
	}
	if len(begun) == n {
		if took := begun[n-1].Sub(begun[0]); took < 2*per {
			t.Errorf("%d jobs began within %v at the rate of %d in %v", n, took, starts, per)
		}
	}
}

// Thousands of jobs that wait for their rate delay nobody behind them.
func TestARatesBacklogDelaysNobody(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	rated := jobs.Kind[json.RawMessage]{Name: "test.rated",
		Policy: jobs.Policy{Rates: []jobs.Rate{{Starts: 2, Per: time.Second}}}}
	free := jobs.Kind[json.RawMessage]{Name: "test.free"}
	started, registry := make(chan struct{}, 100), jobs.NewRegistry()
	jobs.Handle(registry, rated, func(context.Context, jobs.Job, json.RawMessage) error { return nil })
	jobs.Handle(registry, free, func(context.Context, jobs.Job, json.RawMessage) error {
		started <- struct{}{}
		return nil
	})
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	backlog := make([]jobs.Spec, 5000)
	for i := range backlog {
		backlog[i] = rated.New(nil)
	}
	if _, err := store.Enqueue(t.Context(), backlog...); err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Slots: 2, Prefetch: 16,
		PollMin: 20 * time.Millisecond, PollMax: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for i := range 20 {
		begun, within := time.Now(), inTime
		if i == 0 { // the first look reads all of them, with the race detector for up to a minute
			within = 5 * time.Minute
		}
		if _, err := store.Enqueue(t.Context(), free.New(nil)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-started:
			if took := time.Since(begun); took > 2*time.Second && i > 0 {
				t.Errorf("job %d began after %v", i, took)
			}
		case <-time.After(within):
			t.Fatalf("job %d does not begin behind %d that wait for their rate", i, len(backlog))
		}
		time.Sleep(100 * time.Millisecond) // the pace of the load
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
