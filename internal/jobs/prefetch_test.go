package jobs_test

import (
	"context"
	"encoding/json"
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
}

func newPrefetching(t *testing.T) *prefetching {
	t.Helper()
	s := &prefetching{db: jobstest.Migrated(t, jobstest.SQLite), kind: jobs.Kind[json.RawMessage]{Name: "test.ahead"},
		started: make(chan string, 1000), goOn: make(chan struct{})}
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
	if s.store, err = queue.Open(t.Context(), s.db.DB, tables.Options{Registry: registry}); err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: s.store, Registry: registry, Now: time.Now, Prefetch: 16,
		PollMin: 10 * time.Millisecond, PollMax: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s.enqueue(t, `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8`, `"long"`, `10`, `11`, `12`, `13`, `14`, `15`, `16`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
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

// One slot claims several short jobs ahead. When one of them turns out to be long,
// those behind it are released within its run: uncounted, and without a line of
// history. Then they run, once each and in their order.
func TestWhatIsClaimedAheadOfALongJobIsGivenBack(t *testing.T) {
	s := newPrefetching(t)
	var order []string
	for len(order) == 0 || order[len(order)-1] != `"long"` {
		order = append(order, <-s.started)
	}
	waiting := "SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND attempts = 0"
	for begun := time.Now(); s.count(t, waiting) != 7; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second { // a lease's renewer releases them after 15 s
			t.Fatalf("%d of the 7 jobs behind the long one are free for others", s.count(t, waiting))
		}
	}
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
