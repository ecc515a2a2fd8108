package conditions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// fleet is a database that several processes share, and what they told.
type fleet struct {
	t     *testing.T
	db    *jobstest.Database
	store *queue.Store
	past  *history.Store

	mu   sync.Mutex
	told []string // "+no_worker" began, "-no_worker" ended, "!" at once to chats
}

func newFleet(t *testing.T, engine jobstest.Engine, layout tables.Layout) *fleet {
	t.Helper()
	f := &fleet{t: t, db: jobstest.Migrated(t, engine)}
	if _, err := tables.CreateTables(t.Context(), f.db.DB, layout, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	jobs.Handle(registry, jobs.Kind[map[string]any]{Name: "known.type"},
		func(context.Context, jobs.Job, map[string]any) error { return nil })
	found, err := tables.Open(t.Context(), f.db.DB, tables.Options{Registry: registry, DefaultQueue: "cmsjobs"})
	if err != nil {
		t.Fatal(err)
	}
	if f.store, err = queue.New(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	f.past = history.New(found)
	return f
}

// process is one of the fleet; "" is a command.
func (f *fleet) process(name string, change func(*conditions.Config)) *conditions.Evaluator {
	f.t.Helper()
	tell := func(mark string) func(context.Context, conditions.Change) error {
		return func(_ context.Context, c conditions.Change) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.told = append(f.told, mark+map[bool]string{true: "+", false: "-"}[c.Began]+c.Name)
			return nil
		}
	}
	past := f.past
	c := conditions.Config{DB: f.db.DB, Queue: past, Server: past, Known: func(jobType string) bool {
		return jobType == "known.type"
	}, Every: time.Second,
		Limits: map[string]conditions.Limit{}, Notify: tell(""), Direct: tell("!"), Now: time.Now,
		Logger: slog.New(slog.DiscardHandler)}
	if name != "" {
		c.Process = &conditions.Process{ID: name, Host: "host-of-" + name, PID: 1}
	}
	if change != nil {
		change(&c)
	}
	e, err := conditions.New(c)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// heard delivers what processes have to tell, and returns all of it.
func (f *fleet) heard(processes ...*conditions.Evaluator) []string {
	f.t.Helper()
	for _, e := range processes {
		ctx, cancel := context.WithCancel(f.t.Context())
		cancel() // Run delivers what is left and ends
		if err := e.Run(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.told)
}

func (f *fleet) exec(statement string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.db.Rebind(statement), args...); err != nil {
		f.t.Fatalf("%s: %v", statement, err)
	}
}

// trip opens the circuit breaker of a dependency, reset closes all.
func (f *fleet) trip(dependency string) {
	f.t.Helper()
	f.exec("INSERT INTO cmsjobs_breakers (dependency, state, failures, first_failure_at, trips, retry_at, "+
		"last_error, changed_at) VALUES (?, 'open', 5, 1, 1, 1, 'refused', 1)", dependency)
}

func (f *fleet) reset() { f.exec("DELETE FROM cmsjobs_breakers") }

func state(t *testing.T, states []conditions.State, name string) conditions.State {
	t.Helper()
	for _, s := range states {
		if s.Name == name {
			if s.Err != nil {
				t.Fatalf("%s: %v", name, s.Err)
			}
			return s
		}
	}
	t.Fatalf("%s is not measured", name)
	return conditions.State{}
}

func onEach(t *testing.T, test func(t *testing.T, f *fleet)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			t.Run(fmt.Sprintf("%s-%s", engine, layout), func(t *testing.T) { test(t, newFleet(t, engine, layout)) })
		}
	}
}

// TestOneOfManyProcessesTells lets eight processes see the same conditions
// begin and end at the same time.
func TestOneOfManyProcessesTells(t *testing.T) {
	onEach(t, func(t *testing.T, f *fleet) {
		f.trip("smtp:mail")
		var all []*conditions.Evaluator
		for i := range 8 {
			all = append(all, f.process(fmt.Sprint("p", i), func(c *conditions.Config) {
				c.Limits[conditions.CircuitOpen] = conditions.Limit{Unit: conditions.Duration}
				c.Circuits = func(context.Context) ([]conditions.Circuit, error) {
					return []conditions.Circuit{{Dependency: "smtp:mail", LastError: "refused"}}, nil
				}
			}))
		}
		together := func() {
			var group sync.WaitGroup
			for _, e := range all {
				group.Go(func() {
					for _, s := range e.Evaluate(t.Context()) {
						if s.Err != nil {
							t.Errorf("%s: %v", s.Name, s.Err)
						}
					}
				})
			}
			group.Wait()
		}
		together()
		if s := state(t, all[3].Evaluate(t.Context()), conditions.CircuitOpen); !s.Active || s.Since.IsZero() ||
			!strings.Contains(s.Detail, "smtp:mail") {
			t.Errorf("%+v", s)
		}
		f.reset()
		together()
		told := f.heard(all...)
		slices.Sort(told) // each process tells in its own time
		if !slices.Equal(told, []string{"+circuit_open", "-circuit_open"}) {
			t.Errorf("told: %v", told)
		}
	})
}

// TestTheQueueIsMeasured has one row of each sort, on every database and layout.
func TestTheQueueIsMeasured(t *testing.T) {
	onEach(t, func(t *testing.T, f *fleet) {
		for _, name := range []string{conditions.NoWorker, conditions.UnknownJobs, conditions.QueueUnattended} {
			if s := state(t, f.process("", nil).Evaluate(t.Context()), name); s.Active {
				t.Errorf("an empty queue: %+v", s)
			}
		}
		short := func(c *conditions.Config) {
			for _, name := range []string{conditions.NoWorker, conditions.QueueUnattended, conditions.UnknownJobs,
				conditions.JobOverdue} {
				c.Limits[name] = conditions.Limit{Unit: conditions.Duration}
			}
		}
		for _, queue := range []string{"cmsjobs", "other"} {
			if _, err := f.store.Enqueue(t.Context(), jobs.Spec{Type: "known.type", Queue: queue}); err != nil {
				t.Fatal(err)
			}
		}
		e := f.process("", short)
		if s := state(t, e.Evaluate(t.Context()), conditions.NoWorker); !s.Active {
			t.Errorf("without a worker: %+v", s)
		}
		if _, err := f.store.Heartbeat(t.Context(), jobs.WorkerInfo{ID: "w", Host: "h", Queues: []string{"cmsjobs"},
			Types: []string{"known.type"}, Slots: 1, Status: "running", StartedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		states := e.Evaluate(t.Context())
		for name, want := range map[string]string{conditions.NoWorker: "", conditions.QueueUnattended: "other",
			conditions.JobOverdue: "cmsjobs", conditions.UnknownJobs: ""} {
			if s := state(t, states, name); s.Active != (want != "") || !strings.Contains(s.Detail, want) {
				t.Errorf("with a worker: %+v", s)
			}
		}
	})
}

// TestALocalConditionEndsWithItsProcess: what one process saw of itself, others
// show and do not end, until it is silent.
func TestALocalConditionEndsWithItsProcess(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	full := func(c *conditions.Config) {
		c.Folders, c.Free = []string{"/data"}, func(string) (int64, error) { return 0, nil }
	}
	sick, well := f.process("sick", full), f.process("well", nil)
	if s := state(t, sick.Evaluate(t.Context()), conditions.DiskFull); !s.Active || !s.Here ||
		!strings.Contains(s.Detail, "host-of-sick") {
		t.Errorf("where it is: %+v", s)
	}
	if s := state(t, well.Evaluate(t.Context()), conditions.DiskFull); !s.Active || s.Here {
		t.Errorf("elsewhere: %+v", s)
	}
	f.exec("UPDATE cmsjobs_conditions SET seen_at = seen_at - 60000, changed_at = changed_at - 60000 WHERE name = " +
		"'disk_full'")
	if s := state(t, well.Evaluate(t.Context()), conditions.DiskFull); s.Active {
		t.Errorf("the process is gone: %+v", s)
	}
	if told := f.heard(well); !slices.Contains(told, "-disk_full") {
		t.Errorf("told: %v", told)
	}
}

// TestAConditionThatCannotBeWrittenIsLoggedOnce: a disk that is full for hours fills
// no log, and the next outage is logged again.
func TestAConditionThatCannotBeWrittenIsLoggedOnce(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	var log bytes.Buffer
	e := f.process("p", func(c *conditions.Config) {
		c.Folders, c.Free = []string{"/data"}, func(string) (int64, error) { return 0, nil }
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	for outage := range 2 {
		f.exec("CREATE TRIGGER full BEFORE UPDATE ON cmsjobs_conditions BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
		for range 5 {
			e.Evaluate(t.Context())
		}
		f.exec("DROP TRIGGER full")
		f.exec("UPDATE cmsjobs_conditions SET active = 0, seen_at = 0")
		e.Evaluate(t.Context())
		f.exec("UPDATE cmsjobs_conditions SET active = 0, seen_at = 0")
		if n := strings.Count(log.String(), "event=condition.write_failed"); n != outage+1 {
			t.Errorf("after outage %d: %d lines\n%s", outage+1, n, log.String())
		}
	}
}

// TestALastingConditionMustLast: an outage of a minute is no news.
func TestALastingConditionMustLast(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	f.trip("s3:files")
	e := f.process("p", func(c *conditions.Config) {
		c.Circuits = func(context.Context) ([]conditions.Circuit, error) {
			return []conditions.Circuit{{Dependency: "s3:files"}}, nil
		}
	})
	if s := state(t, e.Evaluate(t.Context()), conditions.CircuitOpen); s.Active {
		t.Errorf("at once: %+v", s)
	}
	f.exec("UPDATE cmsjobs_conditions SET pending_since = pending_since - 1000000 WHERE pending_since > 0")
	if s := state(t, e.Evaluate(t.Context()), conditions.CircuitOpen); !s.Active {
		t.Errorf("after 15 minutes: %+v", s)
	}
	if s := state(t, f.process("", func(c *conditions.Config) {
		c.Circuits = func(context.Context) ([]conditions.Circuit, error) { return nil, errors.New("unreachable") }
	}).Evaluate(t.Context()), conditions.NoWorker); s.Active {
		t.Errorf("%+v", s)
	}
}

// TestAnOverdueEntryIsSeenAtOnce: entries are read in every fifth round only while
// none can be overdue before the next reading.
func TestAnOverdueEntryIsSeenAtOnce(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	var age time.Duration // of the one tick that nobody took
	asked := 0
	e := f.process("p", func(c *conditions.Config) {
		c.Scheduling, c.Every = true, time.Minute
		c.Limits[conditions.ScheduleOverdue] = conditions.Limit{
			Unit: conditions.Duration, Value: int64(10 * time.Minute)}
		c.Overdue = func(_ context.Context, late time.Duration) (list []conditions.OverdueEntry, err error) {
			if asked++; age > late {
				list = append(list, conditions.OverdueEntry{Entry: "nightly"})
			}
			return list, nil
		}
	})
	for round, step := range []struct {
		age     time.Duration
		asked   int
		overdue bool
	}{{age: time.Minute, asked: 1}, {age: 2 * time.Minute}, {age: 3 * time.Minute}, {age: 4 * time.Minute},
		{age: 5 * time.Minute},
		{age: 6 * time.Minute, asked: 2}, {age: 9 * time.Minute, asked: 2},
		{age: 11 * time.Minute, asked: 2, overdue: true}} {
		age, asked = step.age, 0
		if s := state(t, e.Evaluate(t.Context()), conditions.ScheduleOverdue); s.Active != step.overdue ||
			asked != step.asked {
			t.Errorf("round %d: overdue %v, read %d times; want %v, %d", round, s.Active, asked, step.overdue,
				step.asked)
		}
	}
}

// TestAMissingTableHidesNothingElse takes away one by one the tables that every
// evaluation reads.
func TestAMissingTableHidesNothingElse(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			f := newFleet(t, engine, tables.Stock)
			e := f.process("p", func(c *conditions.Config) {
				c.Folders, c.Free = []string{"/data"}, func(string) (int64, error) { return 0, nil }
				c.Scheduling = true
				c.Limits[conditions.CircuitOpen] = conditions.Limit{Unit: conditions.Duration}
				c.Circuits = func(context.Context) ([]conditions.Circuit, error) {
					return []conditions.Circuit{{Dependency: "smtp:mail", LastError: "refused"}}, nil
				}
			})
			e.Evaluate(t.Context())
			f.trip("smtp:mail")
			for _, table := range []string{"cmsjobs_processes", "cmsjobs_conditions", "cmsjobs_breakers"} {
				f.exec("UPDATE cmsjobs_processes SET scheduled_at = 1")
				f.exec("ALTER TABLE " + table + " RENAME TO lost")
				states := e.Evaluate(t.Context())
				f.exec("ALTER TABLE lost RENAME TO " + table)
				for name, active := range map[string]bool{conditions.DatabaseDown: false, conditions.DiskFull: true,
					conditions.CircuitOpen: true, conditions.NoScheduler: true} {
					if name == conditions.NoScheduler && table == "cmsjobs_processes" {
						continue
					}
					if s := state(t, states, name); s.Active != active {
						t.Errorf("without %s: %+v", table, s)
					}
				}
			}
		})
	}
}

// TestAClockThatJumpsIsSeen moves this host's clock while time goes on.
func TestAClockThatJumpsIsSeen(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	ahead := time.Duration(0)
	e := f.process("p", func(c *conditions.Config) { c.Now = func() time.Time { return time.Now().Add(ahead) } })
	if s := state(t, e.Evaluate(t.Context()), conditions.ClockJump); s.Active {
		t.Errorf("%+v", s)
	}
	ahead = time.Hour
	if s := state(t, e.Evaluate(t.Context()), conditions.ClockJump); !s.Active ||
		!strings.Contains(s.Detail, "60 min") {
		t.Errorf("an hour ahead: %+v", s)
	}
}

// TestSilenceFollowsTrouble pings while all is well, once for all processes,
// and not while a failing condition holds.
func TestSilenceFollowsTrouble(t *testing.T) {
	f := newFleet(t, jobstest.SQLite, tables.Stock)
	var mu sync.Mutex
	calls := map[string]int{}
	status := http.StatusOK
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls[r.URL.Path]++
		w.WriteHeader(status)
	}))
	defer monitor.Close()
	var free int64 = 1 << 40
	success := time.Now()
	var all []*conditions.Evaluator
	for _, name := range []string{"a", "b"} {
		all = append(all, f.process(name, func(c *conditions.Config) {
			c.Folders, c.Free = []string{"/data"}, func(string) (int64, error) { return free, nil }
			c.Pinger = &conditions.Pinger{URL: monitor.URL + "/service", Every: time.Hour, Client: monitor.Client(),
				Entries: map[string]string{"nightly": monitor.URL + "/nightly", "never": monitor.URL + "/never"},
				Successes: func(context.Context, []string) (map[string]time.Time, error) {
					return map[string]time.Time{"nightly": success, "never": {}}, nil
				}}
		}))
	}
	ping := func(want map[string]int) {
		t.Helper()
		for _, e := range all {
			e.Round(t.Context())
		}
		mu.Lock()
		defer mu.Unlock()
		for path, n := range want {
			if calls[path] != n {
				t.Errorf("%s was called %d times, not %d", path, calls[path], n)
			}
		}
	}
	ping(map[string]int{"/service": 1, "/nightly": 1, "/never": 0})
	ping(map[string]int{"/service": 1, "/nightly": 1})
	f.exec("UPDATE cmsjobs_pings SET at = at - 3600001 WHERE name = '(service)'")
	free = 0
	success = success.Add(time.Second)
	ping(map[string]int{"/service": 1, "/nightly": 2}) // the disk is full; the entry succeeded
	free = 1 << 40
	status = http.StatusInternalServerError // the monitor fails: it is called again
	ping(map[string]int{"/service": 3})
}

func TestLimitsAreRead(t *testing.T) {
	limits, err := conditions.Limits(map[string]string{"job_overdue": "1h", "disk_full": "1GiB", "failure_rate": "80%",
		"queue_growing": "500000", "circuit_open": "2d"})
	if err != nil || limits["job_overdue"].Value != int64(time.Hour) || limits["disk_full"].Value != 1<<30 ||
		limits["failure_rate"].Value != 80 || limits["circuit_open"].Value != int64(48*time.Hour) {
		t.Errorf("%v %v", limits, err)
	}
	for name, text := range map[string]string{"nosuch": "1h", "no_backup": "1h", "job_overdue": "soon",
		"disk_full": "much", "failure_rate": "101%", "queue_growing": "-1", "database_down": "1s"} {
		if _, err := conditions.Limits(map[string]string{name: text}); err == nil {
			t.Errorf("%s: %s is taken", name, text)
		}
	}
}
