package jobs_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// slowRelay is a store whose first settlement that brings a job is long on its way back.
type slowRelay struct {
	*queue.Store
	once   sync.Once
	called chan struct{}
	goOn   chan struct{}
}

func (r *slowRelay) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, c jobs.ClaimRequest) ([]error,
	[]jobs.Claimed, error) {
	results, next, err := r.Store.SettleAndClaim(ctx, ends, c)
	if len(next) > 0 {
		r.once.Do(func() {
			close(r.called)
			<-r.goOn
		})
	}
	return results, next, err
}

// stopping tells when a worker has begun to stop.
type stopping struct {
	slog.Handler
	begun chan struct{}
}

func (stopping) Enabled(context.Context, slog.Level) bool { return true }
func (s stopping) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "worker claims no more jobs" {
		close(s.begun)
	}
	return nil
}

// A worker with one slot is asked to stop while the settlement that brings the
// next job is on its way: the job is released uncounted, and not run.
func TestWhatASettlementBringsToAStoppingWorkerIsGivenBack(t *testing.T) {
	const count = 200 // the end of a run that meets a claim under way brings none
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	kind := jobs.Kind[struct{}]{Name: "test.relay"}
	var ran atomic.Int64
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, struct{}) error { ran.Add(1); return nil })
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), slices.Repeat([]jobs.Spec{kind.New(struct{}{})}, count)...); err != nil {
		t.Fatal(err)
	}
	source := &slowRelay{Store: store, called: make(chan struct{}), goOn: make(chan struct{})}
	log := stopping{slog.DiscardHandler, make(chan struct{})}
	w, err := jobs.NewWorker(jobs.Config{Source: source, Registry: registry, Now: time.Now, Logger: slog.New(log),
		Grace: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-source.called
	stop()
	<-log.begun
	before := ran.Load()
	close(source.goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var waiting int
	if err := db.Get(&waiting, "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0"); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != before || waiting+int(before) != count {
		t.Errorf("%d of %d jobs ran before the worker was asked to stop, %d in all, and %d wait uncounted", before, count,
			ran.Load(), waiting)
	}
	var given int
	if err := db.Get(&given, "SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'released'"); err != nil || given != 0 {
		t.Errorf("%d lines of the history, %v; the one that came along was never begun", given, err)
	}
}

// claimedBeside is a store whose first settlement of many jobs is on its way until a claim
// has returned that began after it.
type claimedBeside struct {
	*queue.Store
	t       *testing.T
	settles atomic.Int64 // of many
	claims  chan struct{}
}

// manyEnds is how many ends go by themselves.
const manyEnds = 200

func (c *claimedBeside) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	if len(ends) >= manyEnds && c.settles.Add(1) == 1 {
		for len(c.claims) > 0 {
			<-c.claims
		}
		select {
		case <-c.claims:
		case <-time.After(20 * time.Second):
			c.t.Error("nothing is claimed while many ends are written")
		}
	}
	return c.Store.Settle(ctx, ends)
}

func (c *claimedBeside) Claim(ctx context.Context, r jobs.ClaimRequest) ([]jobs.Claimed, error) {
	claimed, err := c.Store.Claim(ctx, r)
	if len(claimed) > 0 {
		c.claims <- struct{}{}
	}
	return claimed, err
}

// The slots of a worker that claims many jobs ahead do not wait until the ends of those
// before are written: the next ones are claimed meanwhile.
func TestManyEndsAreWrittenBesideTheNextClaim(t *testing.T) {
	const count = 12_000
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry, all := jobs.NewRegistry(), make(chan struct{})
	kind := jobs.Kind[struct{}]{Name: "test.short"}
	var ran atomic.Int64
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, struct{}) error {
		if ran.Add(1) == count {
			close(all)
		}
		return nil
	})
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), slices.Repeat([]jobs.Spec{kind.New(struct{}{})}, count)...); err != nil {
		t.Fatal(err)
	}
	source := &claimedBeside{Store: store, t: t, claims: make(chan struct{}, count)}
	w, err := jobs.NewWorker(jobs.Config{Source: source, Registry: registry, Now: time.Now, Slots: 100, Prefetch: 2000,
		PollMin: 10 * time.Millisecond, PollMax: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-all
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if source.settles.Load() == 0 {
		t.Error("no settlement had many ends")
	}
}
