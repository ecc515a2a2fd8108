package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// world is a database with a separate clock and the site that lives by it.
type world struct {
	db      *jobstest.Database
	unix    atomic.Int64 // the database's clock
	jobType jobs.Kind[map[string]string]
}

func newWorld(t testing.TB, engine jobstest.Engine, start time.Time) *world {
	t.Helper()
	raw := jobstest.Open(t, engine)
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: raw.DSN, MaxConnections: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	raw.DB = db
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(context.Background(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	w := &world{db: raw, jobType: jobs.Kind[map[string]string]{Name: "test.work"}}
	w.unix.Store(start.Unix())
	return w
}

func (w *world) now() time.Time { return time.Unix(w.unix.Load(), 0).UTC() }

func (w *world) store(t testing.TB) *queue.Store {
	t.Helper()
	r := jobs.NewRegistry()
	jobs.Handle(r, w.jobType, func(context.Context, jobs.Job, map[string]string) error { return nil })
	s, err := queue.Open(context.Background(), w.db.DB, tables.Options{Registry: r, DatabaseClock: w.now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// counts are the jobs in the table by the entry that they say they come from.
func (w *world) counts(t testing.TB) map[string]int {
	t.Helper()
	var payloads []string
	if err := w.db.Select(&payloads, "SELECT payload FROM jobs"); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, p := range payloads {
		e, _, err := jobs.Parse([]byte(p), func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		counts[string(e.Data)]++
	}
	return counts
}

var zones = []string{"UTC", "America/New_York", "Asia/Ho_Chi_Minh", "Australia/Lord_Howe"}

// timetable has a daily entry inside the hour that New York leaves out, one
// that it has twice, one in Lord Howe's half hour, and one of every hour.
func timetable(zone string) []schedule.Entry {
	var list []schedule.Entry
	for name, cron := range map[string]string{"daily": "0 2 * * *", "half": "15 2 * * *", "fold": "30 1 * * *",
		"hourly": "0 * * * *"} {
		name = zone + " " + name
		list = append(list, schedule.Entry{
			Name: name, Cron: cron, Job: jobs.Spec{Type: "test.work", Data: fmt.Appendf(nil, `{"entry":%q}`, name)},
			Policy: schedule.All, CatchUp: 24 * time.Hour})
	}
	return list
}

// expected counts the ticks of a timetable apart from the scheduler: minute by
// minute of real time, by what the wall shows.
func expected(t testing.TB, start, end time.Time) map[string]int {
	counts := map[string]int{}
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := start.Add(time.Minute); !at.After(end); at = at.Add(time.Minute) {
			local := at.In(zone)
			key := func(entry string) string { return fmt.Sprintf(`{"entry":"%s %s"}`, name, entry) }
			if local.Minute() == 0 || (jumped(local) && local.Minute() == 30) { // Lord Howe's gap ends at half past
				counts[key("hourly")]++
			}
			for entry, minute := range map[string]int{"daily": 120, "half": 135, "fold": 90} {
				passed := local.Hour()*60 + local.Minute()
				before := at.Add(-time.Minute).In(zone)
				was := before.Hour()*60 + before.Minute()
				if (passed == minute && !again(at, zone)) || (was < minute && minute < passed) {
					counts[key(entry)]++
				}
			}
		}
	}
	return counts
}

// again says that the wall showed this time already, an hour or half of it ago.
func again(at time.Time, zone *time.Location) bool {
	wall := at.In(zone).Format("15:04")
	return at.Add(-time.Hour).In(zone).Format("15:04") == wall ||
		at.Add(-30*time.Minute).In(zone).Format("15:04") == wall
}

func jumped(local time.Time) bool {
	return offset(local) != offset(local.Add(-time.Minute)) && offset(local) > offset(local.Add(-time.Minute))
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// errKilled ends an instance at once, as SIGKILL does.
var errKilled = errors.New("killed")

// ticker is what an instance asks; it may be one that judges badly.
type ticker = schedule.Ticker

// simulate lets five instances with separate clocks live through a time:
// they ring at their own minutes, all at once or apart, and are killed in the
// middle of what they do.
func simulate(t testing.TB, w *world, end time.Time, step time.Duration, judge func(*queue.Store) ticker) (rings,
	kills int64) {
	var killed, rung atomic.Int64
	random := rand.New(rand.NewPCG(1, 2))
	var instances []*instance
	for range 5 {
		in := &instance{store: w.store(t)}
		in.judge = judge(in.store)
		in.restart(t)
		instances = append(instances, in)
	}
	for _, zone := range zones { // what lies before the month was looked at
		for _, e := range timetable(zone) {
			if _, err := instances[0].store.FirstSeen(context.Background(), map[string]string{
				e.Name: e.Cron}); err != nil {
				t.Fatal(err)
			}
			if _, won, err := instances[0].store.TakeTick(context.Background(), jobs.TickRecord{
				Entry: e.Name, Tick: w.now(), At: w.now(), Outcome: "skipped"}, nil); err != nil || !won {
				t.Fatal(won, err)
			}
		}
	}
	for now := w.now(); now.Before(end); now = now.Add(step) {
		w.unix.Store(now.Add(step).Unix())
		var all sync.WaitGroup
		for i, in := range instances {
			if random.IntN(6) == 0 {
				continue // by its clock, half a minute behind, it is not yet time
			}
			kill := random.IntN(20) == 0
			all.Go(func() {
				rung.Add(1)
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				if kill {
					killed.Add(1)
					delay := time.AfterFunc(time.Duration(i+1)*700*time.Microsecond, func() { cancel(errKilled) })
					defer delay.Stop()
				}
				for _, s := range in.schedulers {
					if _, err := s.Tick(ctx); err != nil && !kill && !errors.Is(err, errKilled) {
						t.Errorf("instance %d: %v", i, err)
					}
				}
				if kill {
					in.restart(t)
				}
			})
		}
		all.Wait()
	}
	for _, in := range instances { // the last ring of each
		for _, s := range in.schedulers {
			if _, err := s.Tick(context.Background()); err != nil && !errors.Is(err, errKilled) {
				t.Error(err)
			}
		}
	}
	return rung.Load(), killed.Load()
}

type instance struct {
	store      *queue.Store
	judge      ticker
	schedulers []*schedule.Scheduler
}

func (in *instance) restart(t testing.TB) {
	in.schedulers = nil
	for _, name := range zones {
		s, err := schedule.New(schedule.Config{Entries: timetable(name), Ticker: in.judge, Edits: in.store,
			Zone: func(context.Context) (*time.Location, error) { return time.LoadLocation(name) }})
		if err != nil {
			t.Error(err)
			return
		}
		in.schedulers = append(in.schedulers, s)
	}
}

// F9: five schedulers, a month with the days on which New York (8 March) and
// Lord Howe (5 April) move their clocks, every tick exactly once. MySQL,
// SQLite and PostgreSQL see the days around each, and the whole month with CMSJOBS_SOAK=1.
func TestFiveSchedulersOverAMonth(t *testing.T) {
	month := [2]time.Time{time.Date(2026, 3, 7, 0, 30, 0, 0, time.UTC), time.Date(2026, 4, 7, 0, 30, 0, 0, time.UTC)}
	spring, autumn := [2]time.Time{month[0], month[0].AddDate(0, 0, 2)}, [2]time.Time{
		month[1].AddDate(0, 0, -4), month[1]}
	for _, c := range []struct {
		engine jobstest.Engine
		part   [2]time.Time
	}{{jobstest.MariaDB, month}, {jobstest.MySQL, spring}, {jobstest.SQLite, spring}, {jobstest.PostgreSQL, autumn}} {
		if os.Getenv("CMSJOBS_SOAK") == "1" {
			c.part = month
		}
		t.Run(string(c.engine), func(t *testing.T) {
			start, end, step := c.part[0], c.part[1], 47*time.Minute
			if c.engine.IsMySQL() {
				step = 109 * time.Minute // a ring costs a round trip there
			}
			w := newWorld(t, c.engine, start)
			rings, kills := simulate(t, w, end, step, func(s *queue.Store) ticker { return s })
			want := expected(t, start, w.now())
			got := w.counts(t)
			for entry, n := range want {
				if got[entry] != n {
					t.Errorf("%s: %d jobs, %d ticks", entry, got[entry], n)
				}
			}
			if len(got) != len(want) || kills == 0 {
				t.Errorf("%d entries have jobs, %d are there; %d kills", len(got), len(want), kills)
			}
			t.Logf("%d rings, %d kills", rings, kills)
		})
	}
}

// apart records the tick and enqueues the job one after the other, as a
// scheduler does whose key is not in the enqueue's own transaction.
type apart struct {
	*queue.Store
	taken *atomic.Int64
}

func (a apart) TakeTick(ctx context.Context, t jobs.TickRecord, n *jobs.Spec) (jobs.Receipt, bool, error) {
	_, won, err := a.Store.TakeTick(ctx, t, nil)
	if err != nil || !won || n == nil {
		return jobs.Receipt{}, won, err
	}
	if a.taken.Add(1)%7 == 0 { // the process dies between the two
		return jobs.Receipt{}, false, errKilled
	}
	receipts, err := a.Enqueue(ctx, *n)
	if err != nil {
		return jobs.Receipt{}, false, err
	}
	return receipts[0], true, nil
}

// The simulation must find out a scheduler that does it wrong, or it proves
// nothing.
func TestTheSimulationFindsOutATickOutsideOfTheTransaction(t *testing.T) {
	start := time.Date(2026, 3, 7, 0, 30, 0, 0, time.UTC)
	w := newWorld(t, jobstest.SQLite, start)
	var taken atomic.Int64
	simulate(t, w, start.AddDate(0, 0, 1), 47*time.Minute, func(s *queue.Store) ticker { return apart{s, &taken} })
	wrong := 0
	got := w.counts(t)
	for entry, n := range expected(t, start, w.now()) {
		if got[entry] != n {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("the broken scheduler came through unnoticed")
	}
	t.Logf("%d entries have too many or too few jobs", wrong)
}
