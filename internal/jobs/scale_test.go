package jobs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// scaled is a site whose workers' slots are changed while they run.
type scaled struct {
	t        *testing.T
	db       *jobstest.Database
	store    *queue.Store
	history  *history.Store
	registry *jobs.Registry
	kind     jobs.Kind[int]

	running, broken atomic.Int64
	began           chan struct{}
	limit           atomic.Int64  // how many may run when one begins; 0: any number
	goOn            chan struct{} // each value ends a job, closing it all
}

func newScaled(t *testing.T, engine jobstest.Engine) *scaled {
	s := &scaled{t: t, db: jobstest.Migrated(t, engine), registry: jobs.NewRegistry(),
		kind: jobs.Kind[int]{Name: "test.scaled"}, began: make(chan struct{}, 1000), goOn: make(chan struct{})}
	if _, err := tables.CreateTables(t.Context(), s.db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	jobs.Handle(s.registry, s.kind, func(ctx context.Context, _ jobs.Job, n int) error {
		now := s.running.Add(1)
		defer s.running.Add(-1)
		if limit := s.limit.Load(); limit > 0 && now > limit {
			s.broken.Add(1)
		}
		s.began <- struct{}{}
		select {
		case <-s.goOn:
		case <-ctx.Done():
			t.Errorf("the job %d was interrupted: %v", n, context.Cause(ctx))
		}
		time.Sleep(time.Millisecond) // long enough for a job that should not begin beside this one
		return nil
	})
	opened, err := tables.Open(t.Context(), s.db.DB, tables.Options{Registry: s.registry})
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = queue.New(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	s.history = history.New(opened)
	return s
}

// work starts a worker, which reads its orders when tell is called.
func (s *scaled) work(c jobs.Config, id string) (tell func()) {
	s.t.Helper()
	orders := make(chan struct{}, 1)
	c.Source, c.Workers, c.Registry, c.Now = s.store, s.store, s.registry, time.Now
	c.Info.ID, c.Signalled, c.Lease, c.Grace = id, orders, time.Hour, time.Minute
	c.PollMin, c.PollMax, c.BeatBusy, c.BeatIdle = 10*time.Millisecond, 20*time.Millisecond, time.Hour, time.Hour
	w, err := jobs.NewWorker(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	return func() { orders <- struct{}{} }
}

func (s *scaled) enqueue(n int) {
	s.t.Helper()
	for i := range n {
		if _, err := s.store.Enqueue(s.t.Context(), s.kind.New(i)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// begin waits until n more jobs have begun.
func (s *scaled) begin(n int) {
	s.t.Helper()
	for range n {
		select {
		case <-s.began:
		case <-time.After(20 * time.Second):
			s.t.Fatalf("%d jobs run, and no other begins", s.running.Load())
		}
	}
}

// slots waits until the list of workers says that one has n slots.
func (s *scaled) slots(id string, n int) {
	s.t.Helper()
	said := -1
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, err := s.history.Workers(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, w := range list {
			if w.ID == id {
				said = w.Slots
			}
		}
		if said == n {
			return
		}
	}
	s.t.Fatalf("the worker %s says that it has %d slots, want %d", id, said, n)
}

func (s *scaled) count(query string) (n int) {
	s.t.Helper()
	if err := s.db.Get(&n, query); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// A worker whose slots are changed while long jobs run: more slots begin jobs at once;
// fewer interrupt none, and no job begins beside more than the new number. Each job
// runs once.
func TestAWorkerIsScaledWhileItRuns(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, prefetch := range []int{0, 16} {
			t.Run(fmt.Sprintf("%s/prefetch=%d", engine, prefetch), func(t *testing.T) {
				s := newScaled(t, engine)
				s.enqueue(24)
				s.limit.Store(1)
				var p processors
				tell := s.work(jobs.Config{Slots: 1, Prefetch: prefetch, Processors: &p}, "w")
				s.begin(1)
				s.limit.Store(4)
				s.order("", 4)
				tell()
				s.begin(3)
				s.slots("w", 4)
				p.needed(t, 4)

				s.order("", 1)
				tell()
				s.slots("w", 1)
				p.needed(t, 1)
				s.limit.Store(1)
				for left := 3; left >= 1; left-- {
					s.goOn <- struct{}{}
					for s.running.Load() != int64(left) && s.broken.Load() == 0 {
						time.Sleep(time.Millisecond)
					}
				}
				close(s.goOn)
				for end := time.Now().Add(time.Minute); s.count("SELECT COUNT(*) FROM jobs") > 0; {
					if time.Sleep(5 * time.Millisecond); time.Now().After(end) {
						t.Fatal("jobs are left")
					}
				}
				if n := s.broken.Load(); n > 0 {
					t.Errorf("%d jobs began beside more than the slots allow", n)
				}
				if n := s.count("SELECT COUNT(DISTINCT uuid) FROM cmsjobs_runs WHERE outcome = 'completed' AND " +
					"attempt = 1"); n != 24 || s.count("SELECT COUNT(*) FROM cmsjobs_runs") != 24 {
					t.Errorf("%d of 24 jobs ended at their first attempt, in %d runs", n,
						s.count("SELECT COUNT(*) FROM cmsjobs_runs"))
				}
			})
		}
	}
}

// order gives a worker slots, or all of them.
func (s *scaled) order(id string, slots int) {
	s.t.Helper()
	if known, err := s.history.Scale(s.t.Context(), id, slots); err != nil || !known {
		s.t.Fatal(known, err)
	}
}

// A worker that starts later follows the order for all; one for a single worker wins until the next for all, and
// no worker takes more than it can.
func TestOrdersOfSlots(t *testing.T) {
	s := newScaled(t, jobstest.SQLite)
	s.order("", 3)
	s.enqueue(3)
	tellA := s.work(jobs.Config{Slots: 1}, "a")
	s.begin(3)
	tellB := s.work(jobs.Config{Slots: 2, MaxSlots: 5}, "b")
	s.slots("b", 3)
	for _, step := range []struct {
		worker string
		order  int
		a, b   int
	}{
		{"a", 7, 7, 3}, {"b", 7, 7, 5}, {"b", 0, 7, 3}, {"", 4, 4, 4}, {"a", 2, 2, 4}, {"", 0, 1, 2},
	} {
		s.order(step.worker, step.order)
		tellA()
		tellB()
		s.slots("a", step.a)
		s.slots("b", step.b)
	}
	close(s.goOn)
}

// A job that waits for a slot of the process does not begin in a slot that was taken away meanwhile.
func TestAScaledWorkerGivesTurnsBack(t *testing.T) {
	s := newScaled(t, jobstest.SQLite)
	s.limit.Store(1)
	turns, asked := make(chan struct{}), make(chan struct{}, 100)
	tell := s.work(jobs.Config{Slots: 4, Turn: func(ctx context.Context) (func(), error) {
		asked <- struct{}{}
		select {
		case <-turns:
			return func() {}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}, "w")
	s.enqueue(4)
	for range 4 {
		<-asked
	}
	s.order("", 1)
	tell()
	s.slots("w", 1)
	close(turns)
	s.begin(1)
	close(s.goOn)
	for end := time.Now().Add(time.Minute); s.count("SELECT COUNT(*) FROM jobs") > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("jobs are left")
		}
	}
	if n := s.broken.Load(); n > 0 {
		t.Errorf("%d jobs began beside another", n)
	}
	if n := s.count("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"); n != 4 {
		t.Errorf("%d of 4 jobs ended at their first attempt", n)
	}
}
