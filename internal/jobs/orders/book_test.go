package orders_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/orders"
)

type change struct {
	Action string `json:"action"`
}

func (c *change) Validate() error {
	if c.Action == "" {
		return errors.New("an action is needed")
	}
	return nil
}

var (
	internal = jobs.Kind[change]{Name: "test.change"}
	other    = jobs.Kind[change]{Name: "test.other"}
	public   = jobs.Kind[change]{Name: "test.public"}
)

// shop is a registry of two internal types and a public one, whose handlers
// keep what they received.
type shop struct {
	book     *orders.Book
	registry *jobs.Registry
	now      time.Time
	mu       sync.Mutex
	done     []string
}

func newShop(t *testing.T, engine jobstest.Engine, once bool) *shop {
	s := &shop{registry: jobs.NewRegistry(), now: time.Now()}
	s.book = &orders.Book{DB: jobstest.Migrated(t, engine).DB, Now: func() time.Time { return s.now }}
	do := func(ctx context.Context, _ jobs.Job, c change) error {
		if once {
			if err := jobs.UseOrder(ctx); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = append(s.done, c.Action)
		return nil
	}
	jobs.HandleInternal(s.registry, jobs.Internal{Book: s.book, Maker: jobs.Service}, internal, do)
	jobs.HandleInternal(s.registry, jobs.Internal{Book: s.book, Maker: jobs.Administrators, Rows: true}, other, do)
	jobs.Handle(s.registry, public, do)
	return s
}

func (s *shop) run(t *testing.T, kind string, data string) error {
	entry, _ := s.registry.Lookup(kind)
	return entry.Run(t.Context(), jobs.Job{Type: kind, Data: []byte(data)})
}

func TestAJobDoesWhatItsOrderSays(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newShop(t, engine, false)
			long := strings.Repeat("ü", 100_000)
			given, err := s.book.Give(t.Context(), s.registry, internal.New(change{"first"}),
				public.New(change{"plain"}), internal.New(change{long}))
			if err != nil {
				t.Fatal(err)
			}
			if id := jobs.OrderOf(given[0].Data); len(id) != 32 || id == jobs.OrderOf(given[2].Data) ||
				strings.Contains(string(given[0].Data), "first") {
				t.Errorf("the job says %s", given[0].Data)
			}
			if string(given[1].Data) != `{"action":"plain"}` {
				t.Errorf("a public job was changed: %s", given[1].Data)
			}
			for _, n := range given {
				if err := s.run(t, n.Type, string(n.Data)); err != nil {
					t.Error(err)
				}
			}
			if want := []string{"first", "plain", long}; fmt.Sprint(s.done) != fmt.Sprint(want) {
				t.Errorf("done: %.100v", s.done)
			}
			again, err := s.book.Give(t.Context(), s.registry, given[0])
			if err != nil || string(again[0].Data) != string(given[0].Data) {
				t.Errorf("a job with its order got another: %s, %v", again[0].Data, err)
			}
			if n, err := s.book.Prune(t.Context(), s.now.Add(-time.Hour)); err != nil || n != 0 {
				t.Errorf("%d orders were old, %v", n, err)
			}
			if n, err := s.book.Prune(t.Context(), s.now.Add(time.Hour)); err != nil || n != 2 {
				t.Errorf("%d orders were pruned, %v", n, err)
			}
			if err := s.run(t, internal.Name, string(given[0].Data)); !jobs.IsPermanent(err) ||
				!errors.Is(err, jobs.ErrNoOrder) {
				t.Errorf("without its order: %v", err)
			}
		})
	}
}

func TestWhatIsNoOrderFailsForGood(t *testing.T) {
	s := newShop(t, jobstest.SQLite, false)
	given, err := s.book.Give(t.Context(), s.registry, other.New(change{"of another type"}))
	if err != nil {
		t.Fatal(err)
	}
	id := jobs.OrderOf(given[0].Data)
	for _, data := range []string{`{"action":"x"}`, `{}`, ``, `[]`, `null`, `{"order":7}`, `{"order":""}`,
		`{"order":"` + strings.Repeat("0", 32) + `"}`,
		`{"order":"` + id + `"}`, `{"order":"` + strings.ToUpper(id) + `"}`, `{"order":"` + id + `","action":"x"}`} {
		if err := s.run(t, internal.Name, data); !jobs.IsPermanent(err) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if len(s.done) != 0 {
		t.Errorf("done: %v", s.done)
	}
	if _, err := s.book.Give(t.Context(), s.registry, internal.New(change{})); !jobs.IsPermanent(err) {
		t.Errorf("an order that its handler refuses: %v", err)
	}
	if err := s.run(t, other.Name, `{"action":"by a row"}`); err != nil || fmt.Sprint(s.done) != "[by a row]" {
		t.Errorf("where rows may: %v, %v", s.done, err)
	}
}

func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newShop(t, engine, true)
			given, err := s.book.Give(t.Context(), s.registry, internal.New(change{"once"}))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			failed := make([]error, 8)
			for i := range failed {
				wg.Go(func() { failed[i] = s.run(t, internal.Name, string(given[0].Data)) })
			}
			wg.Wait()
			if len(s.done) != 1 {
				t.Errorf("it was done %d times", len(s.done))
			}
			for _, err := range append(failed, s.run(t, internal.Name, string(given[0].Data))) {
				if err != nil && (!errors.Is(err, jobs.ErrOrderUsed) || !jobs.IsPermanent(err)) {
					t.Error(err)
				}
			}
		})
	}
}

func FuzzOrderOf(f *testing.F) {
	f.Add([]byte(`{"order":"0123456789abcdef0123456789abcdef"}`))
	f.Add([]byte(`{"order":"0123456789abcdef0123456789abcdef","x":1}`))
	f.Add([]byte(`{"order":["0123456789abcdef0123456789abcdef"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		id := jobs.OrderOf(data)
		if id != "" && jobs.OrderOf(jobs.OrderData(id)) != id {
			t.Errorf("%q names %q", data, id)
		}
	})
}
