package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// unknownRows is how many rows of a plugin stand before ours: 300,000 at the
// full size, few on SQLite, which the race detector slows down as well.
func unknownRows(engine jobstest.Engine) int {
	switch {
	case os.Getenv("CMSJOBS_SOAK") != "":
		return 300_000
	case engine == jobstest.SQLite:
		return 5000
	}
	return 30_000
}

// inTime is when a job has begun on a machine that does much else; without, it is a second.
const inTime = 40 * time.Second

// Rows of types that nobody here knows, left in the queue by a plugin, delay
// nobody: a new job starts within a poll, one that falls due again within a
// second of its time, and one whose worker died when its lease has ended.
func TestUnknownRowsDelayNobody(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, indexed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/indexed=%v", engine, indexed), func(t *testing.T) {
				t.Parallel() // most of it is waiting
				s := newCrowdedSite(t, engine, indexed)
				s.work(t)
				cold := s.enqueue(t, `{"n":"cold"}`)
				s.starts(t, "the first job after a start", cold, "cold", 1, time.Minute)
				s.starts(t, "a new job", s.enqueue(t, `{"n":"fresh"}`), "fresh", 1, inTime)

				failed := s.starts(t, "a job that fails", s.enqueue(t, `{"n":"again"}`), "again", 1, inTime)
				s.starts(t, "its second attempt", failed.Add(2*time.Second), "again", 2, inTime)

				// Left by other processes: one that failed there, and one whose worker died.
				now := time.Now()
				s.insert(t, `{"type":"test.starts","data":{"n":"theirs"}}`, 1, 0, now.Add(6*time.Second).Unix())
				s.insert(t, `{"type":"test.starts","data":{"n":"lost"}}`, 1, now.Add(6*time.Second).Unix()-90,
					now.Add(-time.Minute).Unix())
				s.starts(t, "another's second attempt", now.Add(6*time.Second), "theirs", 2, inTime)
				s.starts(t, "a job whose worker died", now.Add(7*time.Second), "lost", 2, inTime)
			})
		}
	}
}

// crowdedSite is a stock table with many rows of unknown types before ours.
type crowdedSite struct {
	db       *jobstest.Database
	store    *queue.Store
	registry *jobs.Registry
	kind     jobs.Kind[json.RawMessage]

	mu      sync.Mutex
	started map[string]time.Time // by name and attempt
	told    chan struct{}
}

func newCrowdedSite(t *testing.T, engine jobstest.Engine, indexed bool) *crowdedSite {
	t.Helper()
	s := &crowdedSite{db: jobstest.Migrated(t, engine), registry: jobs.NewRegistry(), started: map[string]time.Time{},
		told: make(chan struct{}, 100)}
	if _, err := tables.CreateTables(t.Context(), s.db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	s.kind = jobs.Kind[json.RawMessage]{Name: "test.starts", Policy: jobs.Policy{Backoff: jobs.Fixed(2 * time.Second)}}
	jobs.Handle(s.registry, s.kind, s.handle)
	var err error
	if s.store, err = queue.Open(t.Context(), s.db.DB, tables.Options{Registry: s.registry}); err != nil {
		t.Fatal(err)
	}
	if indexed {
		if err := s.store.AddIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.store, err = queue.Open(t.Context(), s.db.DB, tables.Options{Registry: s.registry}); err != nil {
			t.Fatal(err)
		}
	}
	s.insert(t, `{"type":"other.plugin","data":{"what":"a row that only a plugin understands"}}`, 0, 0,
		time.Now().Add(-time.Hour).Unix())
	const columns = "queue, payload, attempts, reserved_at, available_at, created_at"
	for have, want := 1, unknownRows(engine); have < want; have *= 2 {
		s.db.MustExec(fmt.Sprintf("INSERT INTO jobs (%s) SELECT %s FROM jobs LIMIT %d", columns, columns, want-have))
	}
	if engine == jobstest.PostgreSQL {
		s.db.MustExec("ANALYZE jobs") // as autovacuum does within a minute
	}
	return s
}

func (s *crowdedSite) insert(t *testing.T, payload string, attempts int, reserved, available int64) {
	t.Helper()
	var lock any
	if reserved > 0 {
		lock = reserved
	}
	s.db.MustExec(s.db.Rebind("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) "+
		"VALUES ('default', ?, ?, ?, ?, ?)"),
		payload, attempts, lock, available, available)
}

func (s *crowdedSite) handle(_ context.Context, job jobs.Job, data json.RawMessage) error {
	var named struct{ N string }
	if err := json.Unmarshal(data, &named); err != nil {
		return err
	}
	s.mu.Lock()
	s.started[fmt.Sprint(named.N, job.Attempt)] = time.Now()
	s.mu.Unlock()
	s.told <- struct{}{}
	if named.N == "again" && job.Attempt == 1 {
		return errors.New("it fails once")
	}
	return nil
}

func (s *crowdedSite) enqueue(t *testing.T, data string) time.Time {
	t.Helper()
	at := time.Now()
	if _, err := s.store.Enqueue(t.Context(), s.kind.New(json.RawMessage(data))); err != nil {
		t.Fatal(err)
	}
	return at
}

// work lets a worker run until the test ends.
func (s *crowdedSite) work(t *testing.T) {
	t.Helper()
	w, err := jobs.NewWorker(jobs.Config{Source: s.store, Registry: s.registry, Now: time.Now, Slots: 2,
		PollMin: 200 * time.Millisecond, PollMax: 500 * time.Millisecond,
		Lease: 30 * time.Second, DatabaseTrouble: database.Outage})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// starts waits for an attempt and holds it to at most slack after due.
func (s *crowdedSite) starts(t *testing.T, what string, due time.Time, name string, attempt int,
	slack time.Duration) time.Time {
	t.Helper()
	timer := time.After(time.Until(due) + slack)
	for {
		s.mu.Lock()
		at, did := s.started[fmt.Sprint(name, attempt)]
		s.mu.Unlock()
		if did {
			t.Logf("%s starts %v after its time", what, at.Sub(due).Round(time.Millisecond))
			return at
		}
		select {
		case <-s.told:
		case <-timer:
			t.Fatalf("%s has not started %v after its time", what, slack)
		}
	}
}
