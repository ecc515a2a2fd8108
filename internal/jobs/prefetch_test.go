package jobs_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// prefetching is a site whose worker has one slot and claims ahead.
type prefetching struct {
	db      *jobstest.Database
	store   *queue.Store
	kind    jobs.Kind[json.RawMessage]
	started chan string   // data of each job that begins
	goOn    chan struct{} // ends the job "long"
	ended   chan error    // what the worker's Run returned
}

func newPrefetching(t *testing.T, c jobs.Config, o tables.Options) *prefetching {
	t.Helper()
	s := &prefetching{db: jobstest.Migrated(t, jobstest.SQLite), kind: jobs.Kind[json.RawMessage]{Name: "test.ahead"},
		started: make(chan string, 1000), goOn: make(chan struct{}),
		ended: make(chan error, 1)}
	if _, err := tables.CreateTables(t.Context(), s.db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	jobs.Handle(registry, s.kind, func(_ context.Context, _ jobs.Job, data json.RawMessage) error {
		s.started <- string(data)
		if string(data) == `"long"` {
			<-s.goOn
		}
		return nil
	})
	var err error
	o.Registry = registry
	if s.store, err = queue.Open(t.Context(), s.db.DB, o); err != nil {
		t.Fatal(err)
	}
	c.Source, c.Registry, c.Now, c.Prefetch = s.store, registry, time.Now, 16
	c.PollMin, c.PollMax = 10*time.Millisecond, 50*time.Millisecond
	w, err := jobs.NewWorker(c)
	if err != nil {
		t.Fatal(err)
	}
	s.enqueue(t, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `"long"`, `10`, `11`, `12`, `13`, `14`, `15`, `16`)
	ctx, stop := context.WithCancel(t.Context())
	go func() { s.ended <- w.Run(ctx); close(s.ended) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *prefetching) enqueue(t *testing.T, data ...string) {
	t.Helper()
	for _, d := range data {
		if _, err := s.store.Enqueue(t.Context(), s.kind.New(json.RawMessage(d))); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *prefetching) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := s.db.Get(&n, query); err != nil {
		t.Fatal(err)
	}
	return n
}

// untilGivenBack waits until the long job runs and those behind it are free for others.
func (s *prefetching) untilGivenBack(t *testing.T) (order []string) {
	t.Helper()
	for len(order) == 0 || order[len(order)-1] != `"long"` {
		order = append(order, <-s.started)
	}
	waiting := "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0"
	for begun := time.Now(); s.count(t, waiting) != 7; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second { // a lease's renewer releases them after 15 s
			t.Fatalf("%d of the 7 jobs behind the long one are free for others", s.count(t, waiting))
		}
	}
	return order
}

// A worker that ends when nothing is due released jobs unstarted, which a table of whole
// seconds has due again in the next second: it stays for them.
func TestAWorkerThatEndsWhenEmptyRunsWhatItReleased(t *testing.T) {
	var later atomic.Int64 // the database's clock stands still at first
	begun := time.Now().Truncate(time.Second)
	s := newPrefetching(t, jobs.Config{StopWhenEmpty: true}, tables.Options{DatabaseClock: func() time.Time {
		return begun.Add(time.Duration(later.Load()))
	}})
	s.untilGivenBack(t)
	close(s.goOn)
	tick := time.AfterFunc(300*time.Millisecond, func() { later.Store(int64(time.Second)) })
	defer tick.Stop()
	select {
	case err := <-s.ended:
		if n := s.count(t, "SELECT COUNT(*) FROM jobs"); n != 0 || err != nil {
			t.Errorf("the worker ended with %d jobs left, %v", n, err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the worker did not end")
	}
}

// One slot claims several short jobs ahead. When one of them turns out to be long,
// those behind it are released within its run: uncounted, and without a line of
// history. Then they run, once each and in their order.
func TestWhatIsClaimedAheadOfALongJobIsGivenBack(t *testing.T) {
	s := newPrefetching(t, jobs.Config{}, tables.Options{})
	order := s.untilGivenBack(t)
	if n := s.count(t, "SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'released'"); n != 0 {
		t.Errorf("%d lines of history of jobs that never began", n)
	}
	close(s.goOn)
	for len(order) < 16 {
		select {
		case data := <-s.started:
			order = append(order, data)
		case <-time.After(20 * time.Second):
			t.Fatalf("started %v, and then nothing more", order)
		}
	}
	for begun := time.Now(); s.count(t, "SELECT COUNT(*) FROM jobs") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("jobs are left")
		}
	}
	if n := s.count(t, "SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"); n != 16 {
		t.Errorf("%d of 16 jobs ended at their first attempt", n)
	}
}

// processors note what a worker says.
type processors struct{ few, begun, ended atomic.Int64 }

func (p *processors) Few(n int) { p.few.Store(int64(n)) }

// needed fails unless the worker said last that it needs n.
func (p *processors) needed(t *testing.T, n int64) {
	t.Helper()
	if few := p.few.Load(); few != n {
		t.Errorf("%d processors are said to be enough for %d slots", few, n)
	}
}

func (p *processors) Long() func() {
	p.begun.Add(1)
	return func() { p.ended.Add(1) }
}

// A run that lasts is said to, until it ends.
func TestALongRunIsSaidUntilItEnds(t *testing.T) {
	var p processors
	s := newPrefetching(t, jobs.Config{StopWhenEmpty: true, Processors: &p}, tables.Options{})
	s.untilGivenBack(t)
	if n := p.begun.Load() - p.ended.Load(); n != 1 || p.few.Load() != 1 {
		t.Errorf("%d runs are long while one is, %d are short in one slot", n, p.few.Load())
	}
	close(s.goOn)
	select {
	case err := <-s.ended:
		if p.begun.Load() != p.ended.Load() || err != nil {
			t.Errorf("%d runs were long, %d of them ended, %v", p.begun.Load(), p.ended.Load(), err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the worker did not end")
	}
}
