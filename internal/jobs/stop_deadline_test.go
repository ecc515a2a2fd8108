package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// deaf is a store whose calls, from one moment on, neither answer nor heed
// their context, as a driver does that waits for a lock.
type deaf struct {
	*queue.Store
	from   chan struct{} // closed: calls wait
	until  chan struct{} // closed: they go on
	waited chan struct{} // a call began to wait
}

func (d *deaf) listen() {
	select {
	case <-d.from:
		select {
		case d.waited <- struct{}{}:
		default:
		}
		<-d.until
	default:
	}
}

func (d *deaf) Claim(ctx context.Context, r jobs.ClaimRequest) ([]jobs.Claimed, error) {
	d.listen()
	return d.Store.Claim(ctx, r)
}

func (d *deaf) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	d.listen()
	return d.Store.Settle(ctx, ends)
}

func (d *deaf) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, r jobs.ClaimRequest) ([]error,
	[]jobs.Claimed, error) {
	d.listen()
	return d.Store.SettleAndClaim(ctx, ends, r)
}

func (d *deaf) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	d.listen()
	return d.Store.Renew(ctx, leases, length)
}

func (d *deaf) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	d.listen()
	return d.Store.Heartbeat(ctx, w)
}

func (d *deaf) Deregister(ctx context.Context, id string) error {
	d.listen()
	return d.Store.Deregister(ctx, id)
}

// P9: a worker ends a second after its grace period at the latest, whether it
// is idle, has ends to write or a handler that does not stop, and whatever the
// database does.
func TestAStopHasOneDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		running int
		handler func(context.Context, <-chan struct{})
	}{
		"idle":                      {0, nil},
		"handlers that stop":        {2, func(ctx context.Context, _ <-chan struct{}) { <-ctx.Done() }},
		"handlers that do not stop": {2, func(_ context.Context, over <-chan struct{}) { <-over }},
		"handlers that end meantime": {2, func(context.Context, <-chan struct{}) {
			time.Sleep(1500 * time.Millisecond)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopDeaf(t, c.running, c.handler)
		})
	}
}

func stopDeaf(t *testing.T, running int, handler func(context.Context, <-chan struct{})) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	source := &deaf{from: make(chan struct{}), until: make(chan struct{}), waited: make(chan struct{}, 1)}
	registry, kind := jobs.NewRegistry(), jobs.Kind[struct{}]{Name: "test.stop"}
	started := make(chan struct{}, running)
	jobs.Handle(registry, kind, func(ctx context.Context, _ jobs.Job, _ struct{}) error {
		started <- struct{}{}
		handler(ctx, source.until)
		return ctx.Err()
	})
	var err error
	if source.Store, err = queue.Open(t.Context(), db.DB, tables.Options{Registry: registry}); err != nil {
		t.Fatal(err)
	}
	const grace = 5 * time.Second
	w, err := jobs.NewWorker(jobs.Config{Source: source, Workers: source, Registry: registry, Now: time.Now, Slots: 3,
		Grace: grace, PollMin: 20 * time.Millisecond, BeatBusy: 20 * time.Millisecond, BeatIdle: 20 * time.Millisecond,
		Info: jobs.WorkerInfo{ID: "host:1:x"}})
	if err != nil {
		t.Fatal(err)
	}
	for range running {
		if _, err := source.Enqueue(t.Context(), kind.New(struct{}{})); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range running {
		<-started
	}
	close(source.from)
	<-source.waited
	begun := time.Now()
	stop()
	select {
	case <-ended:
		// A second by the promise, the rest for a machine that others use.
		if took := time.Since(begun); took > grace+8*time.Second {
			t.Errorf("ended %v after it was asked to, the grace period is %v", took, grace)
		}
		close(source.until)
	case <-time.After(grace + 10*time.Second):
		t.Errorf("not ended %v after it was asked to, the grace period is %v", time.Since(begun), grace)
		close(source.until)
		<-ended
	}
}
