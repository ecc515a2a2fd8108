package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/encryption"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/remote"
)

// site is a queue with a hub, and a program that is registered there.
type site struct {
	*testing.T
	hub     *remote.Hub
	store   *queue.Store
	history *history.Store
	stop    func()
	id      string
}

const owner = "token 1"

// newSite registers a program with so many slots that runs shop.resize.
func newSite(t *testing.T, engine jobstest.Engine, layout tables.Layout, slots int) *site {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
		t.Fatal(err)
	}
	ours := jobs.NewRegistry()
	keys, err := encryption.New([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	ours.SetKeys(keys)
	jobs.Handle(ours, jobs.Kind[struct{}]{Name: "mail.send"}, func(context.Context, jobs.Job, struct{}) error {
		return nil
	})
	found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: ours})
	if err != nil {
		t.Fatal(err)
	}
	store, err := queue.New(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, store: store, history: history.New(found)}
	s.hub = &remote.Hub{Types: &announce.Store{DB: db.DB, Now: time.Now}, Registry: ours, DefaultQueue: "default",
		Worker: jobs.Config{Now: time.Now, PollMin: 20 * time.Millisecond, Grace: 5 * time.Second},
		Open: func(ctx context.Context, types *jobs.Registry) (jobs.Source, jobs.WorkerRegistry, error) {
			store, err := queue.Open(ctx, db.DB, tables.Options{Registry: types})
			return store, store, err
		}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.hub.Run(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.stop)
	registered, err := s.hub.Register(t.Context(), owner, s.registration(slots))
	if err != nil {
		t.Fatal(err)
	}
	s.id = registered.ID
	return s
}

// schema is what shop.resize takes: its note is nobody's business.
const schema = `{"type":"object","properties":{"width":{"type":"integer"},"note":{"type":"string","x-encrypted":true}}}`

func (s *site) registration(slots int) remote.Registration {
	return remote.Registration{Name: "shop@test", Slots: slots, Lease: 5 * time.Second, Types: []remote.Type{{
		Name: "shop.resize", MaxAttempts: 3, Backoff: []time.Duration{0}, Schema: []byte(schema)}}}
}

func (s *site) put(n int) (ids []string) {
	s.Helper()
	for range n {
		receipts, err := s.store.Enqueue(s.Context(), jobs.Spec{Type: "shop.resize", Data: []byte(`{"width":3}`)})
		if err != nil {
			s.Fatal(err)
		}
		ids = append(ids, receipts[0].UUID)
	}
	return ids
}

func (s *site) claim(limit int) []remote.Handed {
	s.Helper()
	list, _, err := s.hub.Claim(s.Context(), owner, s.id, limit, 10*time.Second)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

func (s *site) job(id string) jobs.Record {
	s.Helper()
	r, err := s.history.Job(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *site) await(id string, ok func(jobs.Record) bool) jobs.Record {
	s.Helper()
	var r jobs.Record
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if r = s.job(id); ok(r) {
			return r
		}
	}
	s.Fatalf("the job is %+v", r)
	return r
}

// A program gets as many jobs as it has slots, and its end of each is written once,
// however often it says it. Ends of others change nothing.
func TestEndsAreWrittenOnce(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			t.Run(string(engine)+"/"+string(layout), func(t *testing.T) {
				s := newSite(t, engine, layout, 2)
				ids := s.put(3)
				first := s.claim(100)
				if len(first) < 2 {
					first = append(first, s.claim(1)...)
				}
				if len(first) != 2 {
					t.Fatalf("%d jobs were claimed with two slots", len(first))
				}
				if more, _, err := s.hub.Claim(t.Context(), owner, s.id, 10, 500*time.Millisecond); err != nil ||
					len(more) > 0 {
					t.Errorf("a third job was claimed with two slots: %v %v", more, err)
				}
				done := remote.Outcome{Result: []byte(`{"bytes":30}`)}
				if err := s.hub.End(t.Context(), owner, s.id, "made-up", done); !errors.Is(err, remote.ErrLost) {
					t.Errorf("an end without its name: %v", err)
				}
				if err := s.hub.End(t.Context(), "token 2", s.id, first[0].Lease, done); !errors.Is(err,
					jobs.ErrNotFound) {
					t.Errorf("an end by another token: %v", err)
				}
				for range 2 {
					if err := s.hub.End(t.Context(), owner, s.id, first[0].Lease, done); err != nil {
						t.Error(err)
					}
					if r := s.job(first[0].Job.UUID); r.Status != jobs.StatusCompleted ||
						string(r.Result) != `{"bytes":30}` {
						t.Errorf("the end is said to be written, and the job is %+v", r)
					}
				}
				failed := remote.Outcome{Error: "no luck", Permanent: true}
				if err := s.hub.End(t.Context(), owner, s.id, first[1].Lease, failed); err != nil {
					t.Error(err)
				}
				s.await(first[1].Job.UUID, func(r jobs.Record) bool { return r.Status == jobs.StatusFailed })
				last := s.claim(1)
				if len(last) != 1 || last[0].Job.UUID != ids[2] {
					t.Fatalf("the third job was not claimed: %+v", last)
				}
				if err := s.hub.Leave(owner, s.id); err != nil {
					t.Fatal(err)
				}
				s.await(ids[2], func(r jobs.Record) bool { return r.Status == jobs.StatusQueued && r.Attempt == 0 })
			})
		}
	}
}

// A program that dies loses its job after its lease, by an attempt; what it says
// later changes nothing. One that is named by heartbeats stays.
// A field that a program's schema calls encrypted is unreadable in the table, and the
// program gets it as it was.
func TestAProgramReadsItsEncryptedFields(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine, tables.Stock, 1)
			receipts, err := s.store.Enqueue(t.Context(), jobs.Spec{Type: "shop.resize",
				Data: []byte(`{"width":3,"note":"for zoe alone"}`)})
			if err != nil {
				t.Fatal(err)
			}
			if stored := string(s.job(receipts[0].UUID).Payload); strings.Contains(stored, "zoe") ||
				!strings.Contains(stored, encryption.Prefix) {
				t.Errorf("the row has %s", stored)
			}
			got := s.claim(1)
			if len(got) != 1 || !strings.Contains(string(got[0].Job.Data), "for zoe alone") {
				t.Fatalf("the program got %+v", got)
			}
		})
	}
}

func TestASilentProgramLosesItsJobs(t *testing.T) {
	s := newSite(t, jobstest.SQLite, tables.Stock, 2)
	s.put(2)
	list := s.claim(2)
	if len(list) < 2 {
		list = append(list, s.claim(1)...)
	}
	alive, dead := list[0], list[1]
	var taken remote.Handed
	for start := time.Now(); taken.Lease == ""; {
		statuses, _, err := s.hub.Beat(owner, s.id, []remote.Beat{{Lease: alive.Lease, Lines: []string{"still there"}}})
		if err != nil || statuses[0].Status != remote.Running {
			t.Fatalf("the job that heartbeats name is %+v: %v", statuses, err)
		}
		again, _, err := s.hub.Claim(t.Context(), owner, s.id, 1, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) > 0 {
			taken = again[0]
		}
		if time.Since(start) > time.Minute {
			t.Fatal("the job that nobody names is not another's")
		}
	}
	if taken.Job.UUID != dead.Job.UUID || taken.Job.Attempt != 2 || taken.Lease == dead.Lease {
		t.Errorf("claimed again: %+v", taken)
	}
	done := remote.Outcome{}
	if err := s.hub.End(t.Context(), owner, s.id, dead.Lease, done); !errors.Is(err, remote.ErrLost) {
		t.Errorf("the end of the lost run: %v", err)
	}
	if r := s.job(dead.Job.UUID); r.Status != jobs.StatusProcessing {
		t.Errorf("the lost run changed the job: %+v", r)
	}
	for _, lease := range []string{alive.Lease, taken.Lease} {
		if err := s.hub.End(t.Context(), owner, s.id, lease, done); err != nil {
			t.Error(err)
		}
	}
}

// When the service stops, what programs run is released without an attempt, and
// not before they had the time to hear of it.
func TestAStopReleasesWhatProgramsRun(t *testing.T) {
	s := newSite(t, jobstest.SQLite, tables.Stock, 1)
	id := s.put(1)[0]
	s.claim(1)
	s.stop()
	r := s.job(id)
	if r.Status != jobs.StatusQueued || r.Attempt != 0 || r.RunAt.Before(time.Now().Add(time.Second)) {
		t.Errorf("the job is %+v", r)
	}
	if _, err := s.hub.Register(t.Context(), owner, s.registration(1)); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("a stopped hub registers: %v", err)
	}
}

func TestRegistrationsAreJudged(t *testing.T) {
	s := newSite(t, jobstest.SQLite, tables.Stock, 1)
	for what, change := range map[string]func(*remote.Registration){
		"a type of the service":   func(r *remote.Registration) { r.Types[0].Name = "mail.send" },
		"a class of PHP":          func(r *remote.Registration) { r.Types[0].Name = `App\Jobs\Resize` },
		"no slots":                func(r *remote.Registration) { r.Slots = 0 },
		"too many slots":          func(r *remote.Registration) { r.Slots = 101 },
		"a short lease":           func(r *remote.Registration) { r.Lease = time.Second },
		"no types":                func(r *remote.Registration) { r.Types = nil },
		"a type twice":            func(r *remote.Registration) { r.Types = append(r.Types, r.Types[0]) },
		"a type of another token": func(r *remote.Registration) { r.Allowed = []string{"shop.other"} },
		"a schema of a text":      func(r *remote.Registration) { r.Types[0].Schema = []byte(`{"type":"string"}`) },
		"a schema of elsewhere": func(r *remote.Registration) {
			r.Types[0].Schema = []byte(`{"type":"object","$ref":"file:///etc/passwd"}`)
		},
		"no JSON": func(r *remote.Registration) { r.Types[0].Schema = []byte(`{`) },
	} {
		r := s.registration(1)
		change(&r)
		if _, err := s.hub.Register(t.Context(), owner, r); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
