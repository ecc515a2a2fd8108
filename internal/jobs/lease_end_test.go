package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// silent is a store whose ends and renewals get no answer, as on a network that
// swallows packets: they wait for their own time-outs.
type silent struct{ *queue.Store }

func (s *silent) Settle(ctx context.Context, _ []jobs.Settlement) ([]error, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *silent) SettleAndClaim(ctx context.Context, _ []jobs.Settlement, _ jobs.ClaimRequest) ([]error,
	[]jobs.Claimed, error) {
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

func (s *silent) Renew(ctx context.Context, _ []jobs.Lease, _ time.Duration) ([]jobs.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// P3: a run is cancelled two thirds into its lease, although the worker waits
// for the answer to another job's end and holds its lock all the while.
func TestARunIsCancelledBeforeItsLeaseEndsWhateverTheDatabaseDoes(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	short, long := jobs.Kind[struct{}]{Name: "test.short"}, jobs.Kind[struct{}]{Name: "test.long"}
	cancelled := make(chan time.Time, 1)
	jobs.Handle(registry, short, func(context.Context, jobs.Job, struct{}) error { return nil })
	jobs.Handle(registry, long, func(ctx context.Context, _ jobs.Job, _ struct{}) error {
		<-ctx.Done()
		cancelled <- time.Now()
		return ctx.Err()
	})
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), long.New(struct{}{}), short.New(struct{}{})); err != nil {
		t.Fatal(err)
	}
	const lease = 6 * time.Second
	w, err := jobs.NewWorker(jobs.Config{Source: &silent{Store: store}, Registry: registry, Now: time.Now, Slots: 2,
		Grace: time.Millisecond, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	begun := time.Now() // before the claim: no lease ends before begun + lease
	go func() { ended <- w.Run(ctx) }()
	defer func() { stop(); <-ended }()
	select {
	case at := <-cancelled:
		if after := at.Sub(begun); after > lease*5/6 {
			t.Errorf("cancelled %v after the claim; the lease is %v", after, lease)
		}
	case <-time.After(2 * lease):
		t.Errorf("not cancelled %v after the claim; the lease is %v", 2*lease, lease)
	}
}

// A worker behind a network that swallows packets, and another on a whole one.
type pair struct {
	first, second *process
	proxy         *jobstest.Proxy
	config        childConfig // of the first
	long          []int       // keys of the jobs that both want
}

// P3: a worker that is cut off from its database while it settles has stopped
// its jobs before another worker starts them.
func TestAWorkerThatIsCutOffStopsBeforeAnotherStarts(t *testing.T) {
	jobstest.EachMySQL(t, testAWorkerThatIsCutOffStopsBeforeAnotherStarts)
}

func testAWorkerThatIsCutOffStopsBeforeAnotherStarts(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	l.config.Lease = time.Duration(size(6, 30)) * time.Second
	l.config.Slots = 8
	pairs, smallest := make([]*pair, size(3, 10)), l.config.Lease
	for round := range size(1, 5) {
		var all sync.WaitGroup
		for i := range pairs {
			pairs[i] = l.pair(round*len(pairs) + i)
			all.Go(func() { l.cutOff(pairs[i]) })
		}
		all.Wait()
		for _, p := range pairs {
			smallest = min(smallest, l.margin(p))
			p.first.kill()
			p.second.kill()
		}
	}
	if smallest < l.config.Lease/6 {
		t.Errorf("a job was started again %v after its first run had ended, want %v at least", smallest,
			l.config.Lease/6)
	}
	t.Logf("lease %v: the smallest margin is %v", l.config.Lease, smallest.Round(time.Millisecond))
}

// pair lets a worker behind a proxy begin long jobs of a separate queue.
func (l *lab) pair(number int) *pair {
	l.t.Helper()
	p := &pair{proxy: jobstest.NewProxy(l.t, l.server.Port), config: l.config}
	p.config.DSN, p.config.Queues = jobstest.MySQLDSN(p.proxy.Port, "lab"), []string{fmt.Sprintf("queue%d", number)}
	for i := range 4 {
		p.long = append(p.long, number*10_000+i)
	}
	l.enqueueOn(p.config.Queues[0], p.long[0], len(p.long), effect{Length: 58 * time.Second})
	p.first = startChild(l.t, p.config)
	return p
}

// cutOff swallows what the first worker says while it writes the ends of short
// jobs, and starts the second.
func (l *lab) cutOff(p *pair) {
	l.sink.awaitEvents(l.t, p.long, "start", 1, time.Minute)
	time.Sleep(time.Duration(rand.Int64N(int64(l.config.Lease) / 3)))
	l.enqueueOn(p.config.Queues[0], p.long[0]+len(p.long), 500, effect{Length: 20 * time.Millisecond})
	time.Sleep(time.Duration(300+rand.IntN(500)) * time.Millisecond)
	p.proxy.Swallow(true)
	direct := p.config
	direct.DSN = l.dsn
	p.second = startChild(l.t, direct)
	l.sink.awaitEvents(l.t, p.long, "start", 2, 3*l.config.Lease)
	l.sink.awaitEvents(l.t, p.long, "cancelled", 1, 3*l.config.Lease)
}

// margin is how long after the end of their first run the pair's long jobs were
// started again, at least.
func (l *lab) margin(p *pair) time.Duration {
	l.t.Helper()
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	smallest := time.Hour
	for _, key := range p.long {
		var ended, again time.Time
		for _, e := range l.sink.events {
			switch {
			case e.key == key && e.what == "cancelled" && e.pid == p.first.cmd.Process.Pid:
				ended = e.at
			case e.key == key && e.what == "start" && e.pid == p.second.cmd.Process.Pid:
				again = e.at
			}
		}
		if ended.IsZero() || again.IsZero() {
			l.t.Errorf("job %d was cancelled at %v and started again at %v", key, ended, again)
			continue
		}
		smallest = min(smallest, again.Sub(ended))
	}
	return smallest
}

// awaitEvents waits until each of the keys has come by so often.
func (s *sink) awaitEvents(t *testing.T, keys []int, what string, times int, within time.Duration) {
	deadline := time.Now().Add(within)
	for {
		seen := map[int]int{}
		s.mu.Lock()
		for _, e := range s.events {
			if e.what == what {
				seen[e.key]++
			}
		}
		s.mu.Unlock()
		missing := 0
		for _, key := range keys {
			if seen[key] < times {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d of %d jobs have no %d %q within %v", missing, len(keys), times, what, within)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
