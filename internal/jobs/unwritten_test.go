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

// unwritable is a store that takes no ends until it is full no more.
type unwritable struct {
	*queue.Store
	full    atomic.Bool
	refused atomic.Int64
}

func (s *unwritable) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	if s.full.Load() {
		s.refused.Add(1)
		return nil, errors.New("database or disk is full")
	}
	return s.Store.Settle(ctx, ends)
}

func (s *unwritable) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, r jobs.ClaimRequest) ([]error,
	[]jobs.Claimed, error) {
	if s.full.Load() {
		s.refused.Add(1)
		return nil, nil, errors.New("database or disk is full")
	}
	return s.Store.SettleAndClaim(ctx, ends, r)
}

// A worker whose ends cannot be written starts nothing more, keeps what it has
// and goes on when there is space.
func TestNothingIsClaimedWhileEndsCannotBeWritten(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, kind := jobs.NewRegistry(), jobs.Kind[struct{}]{Name: "test.short"}
	var started atomic.Int64
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, struct{}) error { started.Add(1); return nil })
	source := &unwritable{}
	var err error
	if source.Store, err = queue.Open(t.Context(), db.DB, tables.Options{Registry: registry}); err != nil {
		t.Fatal(err)
	}
	enqueue := func(n int) {
		for range n {
			if _, err := source.Enqueue(t.Context(), kind.New(struct{}{})); err != nil {
				t.Fatal(err)
			}
		}
	}
	source.full.Store(true)
	enqueue(1)
	w, err := jobs.NewWorker(jobs.Config{Source: source, Registry: registry, Now: time.Now, Slots: 2,
		StopWhenEmpty: true,
		PollMin:       5 * time.Millisecond, PollMax: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	refused := func(n int64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); source.refused.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d ends were refused within a minute, want %d", source.refused.Load(), n)
			}
		}
	}
	refused(2)
	enqueue(20)
	refused(source.refused.Load() + 4) // many polls
	if n := started.Load(); n != 1 {
		t.Errorf("%d jobs were started though the end of the first could not be written", n)
	}
	source.full.Store(false)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var left int
	if err := db.Get(&left, "SELECT COUNT(*) FROM jobs"); err != nil || left != 0 || started.Load() != 21 {
		t.Errorf("%d jobs are left and %d were started, %v; want 0 and 21", left, started.Load(), err)
	}
}
