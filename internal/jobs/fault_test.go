package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// soak makes the fault tests as large as docs/reliability.md promises; CI runs
// them small.
func soak() bool { return os.Getenv("CMSJOBS_SOAK") == "1" }

func size(small, full int) int {
	if soak() {
		return full
	}
	return small
}

// fault is something that a test did to a process (pid) or to all (pid 0).
type fault struct {
	at    time.Time
	until time.Time // a run that began before it may be cut off by it
	pid   int
}

// lab is one MariaDB of a test's own, a queue in it, workers and a sink.
type lab struct {
	t      *testing.T
	server *jobstest.Server
	dsn    string
	db     *sqlx.DB
	store  *queue.Store
	sink   *sink
	config childConfig
	faults []fault
}

func newLab(t *testing.T, engine jobstest.Engine) *lab {
	t.Helper()
	return newLabOn(t, jobstest.Own(t, engine, "--innodb-flush-log-at-trx-commit=1"))
}

func newLabOn(t *testing.T, server *jobstest.Server) *lab {
	t.Helper()
	admin, err := sqlx.Connect("mysql", server.MySQLDSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	admin.MustExec("CREATE DATABASE lab")
	l := newLabAt(t, server.MySQLDSN("lab"))
	l.server = server
	return l
}

// newLabAt is a lab in an empty database.
func newLabAt(t *testing.T, dsn string) *lab {
	t.Helper()
	l := &lab{t: t, dsn: dsn, sink: newSink()}
	ctx := context.Background()
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: l.dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := migrations.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(ctx, db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	jobs.Handle(registry, effectKind, func(context.Context, jobs.Job, effect) error { return nil })
	l.db = db
	if l.store, err = openStore(ctx, l.dsn, registry, time.Second); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(l.sink)
	t.Cleanup(web.Close)
	l.config = childConfig{DSN: l.dsn, Sink: web.URL, Slots: 4, Lease: 3 * time.Second, Grace: 5 * time.Second}
	return l
}

// enqueue puts in n jobs with keys from..from+n-1.
func (l *lab) enqueue(from, n int, e effect) { l.t.Helper(); l.enqueueOn("default", from, n, e) }

func (l *lab) enqueueOn(queue string, from, n int, e effect) {
	l.t.Helper()
	for start := from; start < from+n; start += 1000 {
		var batch []jobs.Spec
		for key := start; key < min(start+1000, from+n); key++ {
			e.Key = key
			batch = append(batch, effectKind.New(e).On(queue))
		}
		if _, err := l.store.Enqueue(context.Background(), batch...); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lab) fault(pid int, length time.Duration) {
	now := time.Now()
	l.faults = append(l.faults, fault{at: now, until: now.Add(length), pid: pid})
}

// explained says whether a fault lies between the start of a run and the next
// start of the same job. A process that is paused in the moment in which it begins a
// job tells of it when it goes on, and another one may have begun the job meanwhile.
func (l *lab) explained(run, next event) bool {
	for _, f := range l.faults {
		if (f.pid == 0 || f.pid == run.pid) && !f.until.Before(run.at) && !f.at.After(next.at) {
			return true
		}
		if next.attempt < run.attempt && f.pid == next.pid && !f.at.After(next.at) &&
			next.at.Before(f.until.Add(time.Second)) {
			return true
		}
	}
	return false
}

// check reads the history as a judge: nothing lost, nothing left, every second
// run explained by a fault within the life of the run before it.
func (l *lab) check(n int) {
	l.t.Helper()
	runs := map[int][]event{}
	open := map[int]map[int]bool{} // key → pids that run it now
	overlaps := 0
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	slices.SortStableFunc(l.sink.events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range l.sink.events {
		if e.what != "start" {
			delete(open[e.key], e.pid)
			if e.what == "failed" {
				delete(runs, e.key) // the next start is an ordinary retry
			}
			continue
		}
		if before := runs[e.key]; len(before) > 0 && !l.explained(before[len(before)-1], e) {
			l.t.Errorf("job %d ran again without a fault: %+v then %+v", e.key, before[len(before)-1], e)
		}
		for pid := range open[e.key] {
			last := runs[e.key][len(runs[e.key])-1]
			if !l.explained(event{pid: pid, attempt: last.attempt, at: runs[e.key][0].at}, e) {
				overlaps++
			}
		}
		if open[e.key] == nil {
			open[e.key] = map[int]bool{}
		}
		open[e.key][e.pid] = true
		runs[e.key] = append(runs[e.key], e)
	}
	duplicates := 0
	for _, ends := range l.sink.ends {
		duplicates += ends - 1
	}
	var left, dead int
	if err := l.db.Get(&left, "SELECT COUNT(*) FROM jobs"); err != nil {
		l.t.Fatal(err)
	}
	if err := l.db.Get(&dead, "SELECT COUNT(*) FROM failed_jobs"); err != nil {
		l.t.Fatal(err)
	}
	if len(l.sink.ends) != n || left != 0 || dead != 0 || overlaps != 0 {
		l.t.Errorf("%d of %d jobs ended, %d left in the queue, %d in failed_jobs, %d overlaps", len(l.sink.ends), n,
			left, dead, overlaps)
	}
	l.t.Logf("%d jobs, %d faults: %d lost, %d ran twice (each explained), %d overlaps", n, len(l.faults),
		n-len(l.sink.ends), duplicates, overlaps)
}

// empty waits until the queue is empty: the last runs are settled.
func (l *lab) empty() {
	l.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		var left int
		if err := l.db.Get(&left, "SELECT COUNT(*) FROM jobs"); err == nil && left == 0 {
			return
		}
		if time.Now().After(deadline) {
			return // check says what is left
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// F1: kill -9 of workers and of the database server under load.
func TestNothingIsLostWhenWorkersAndTheServerAreKilled(t *testing.T) {
	jobstest.EachMySQL(t, testNothingIsLostWhenWorkersAndTheServerAreKilled)
}

func testNothingIsLostWhenWorkersAndTheServerAreKilled(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	n := size(4000, 100_000)
	l.enqueue(0, n, effect{Length: time.Millisecond})
	workers := make([]*process, size(3, 8))
	for i := range workers {
		workers[i] = startChild(t, l.config)
	}
	for round := range size(6, 100) {
		time.Sleep(time.Duration(200+rand.IntN(300)) * time.Millisecond)
		if round%3 == 2 {
			l.fault(0, 5*time.Second)
			if err := l.server.Kill(); err != nil {
				t.Logf("killing the server: %v", err)
			}
			if err := l.server.Start(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		i := rand.IntN(len(workers))
		l.fault(workers[i].cmd.Process.Pid, 0)
		workers[i].kill()
		workers[i] = startChild(t, l.config)
	}
	l.sink.await(t, n, 5*time.Minute)
	l.empty()
	l.check(n)
}

// F3: resets and black holes on the way to the server.
func TestNothingIsLostOnABadNetwork(t *testing.T) {
	jobstest.EachMySQL(t, testNothingIsLostOnABadNetwork)
}

func testNothingIsLostOnABadNetwork(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	n := size(2500, 20_000)
	l.enqueue(0, n, effect{Length: 2 * time.Millisecond})
	proxy := jobstest.NewProxy(t, l.server.Port)
	l.config.DSN = jobstest.MySQLDSN(proxy.Port, "lab")
	for range 2 {
		startChild(t, l.config)
	}
	for range size(12, 75) {
		time.Sleep(time.Duration(50+rand.IntN(150)) * time.Millisecond)
		l.fault(0, 4*time.Second)
		proxy.Cut()
	}
	proxy.Swallow(true)
	l.fault(0, 20*time.Second)
	time.Sleep(3 * time.Second)
	proxy.Swallow(false)
	proxy.Cut()
	l.sink.await(t, n, 5*time.Minute)
	l.empty()
	l.check(n)
}

// F4: a worker that is stopped for longer than its lease changes nothing when
// it wakes: its jobs are another's by then, who is still at the long ones. What
// the sleeper released or deleted of them would run again, or end unseen.
func TestAWorkerPausedPastItsLeaseChangesNothing(t *testing.T) {
	jobstest.EachMySQL(t, testAWorkerPausedPastItsLeaseChangesNothing)
}

func testAWorkerPausedPastItsLeaseChangesNothing(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	rounds, each, long := size(2, 20), 200, 16
	pause, n := 2*l.config.Lease, rounds*each
	l.pausedWithAnEndOnItsWay(n)
	sleeper := startChild(t, l.config)
	startChild(t, l.config)
	for round := range rounds {
		before := l.startsOf(sleeper.cmd.Process.Pid)
		// Each round has separate jobs, more long ones than the other worker takes:
		// it may have done all earlier ones while the sleeper slept.
		l.enqueue(round*each, long, effect{Length: pause})
		l.enqueue(round*each+long, each-long, effect{Length: 40 * time.Millisecond})
		l.begun(sleeper, before)
		l.fault(sleeper.cmd.Process.Pid, pause)
		sleeper.signal(jobstest.Pause)
		time.Sleep(pause)
		sleeper.signal(jobstest.Continue)
		time.Sleep(300 * time.Millisecond)
	}
	l.sink.await(t, n+1, 5*time.Minute)
	l.empty()
	l.check(n + 1)
}

// begun waits until p has begun more jobs than before.
func (l *lab) begun(p *process, before int) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); l.startsOf(p.cmd.Process.Pid) <= before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			left := -1
			_ = l.db.Get(&left, "SELECT COUNT(*) FROM jobs") // -1 says that this failed
			l.t.Fatalf("the worker begins no job; %d are left", left)
		}
	}
}

func (l *lab) startsOf(pid int) (n int) {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	for _, e := range l.sink.events {
		if e.what == "start" && e.pid == pid {
			n++
		}
	}
	return n
}

// F5: jobs that last several leases run once, because leases are renewed.
func TestAJobLongerThanItsLeaseRunsOnce(t *testing.T) {
	jobstest.EachMySQL(t, testAJobLongerThanItsLeaseRunsOnce)
}

func testAJobLongerThanItsLeaseRunsOnce(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	n := 8
	l.enqueue(0, n, effect{Length: 3 * l.config.Lease})
	for range 2 {
		startChild(t, l.config)
	}
	waitFor(t, "the end of the first jobs, or a second start", func() bool {
		l.sink.mu.Lock()
		ended := len(l.sink.ends)
		l.sink.mu.Unlock()
		return ended > 0 || l.starts() > n
	})
	if starts := l.starts(); starts > n {
		t.Fatalf("%d starts of %d jobs that still run", starts, n)
	}
	l.sink.await(t, n, 2*time.Minute)
	l.empty()
	l.check(n)
	if starts := l.starts(); starts != n {
		t.Errorf("%d starts of %d jobs", starts, n)
	}
}

func (l *lab) starts() int {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	n := 0
	for _, e := range l.sink.events {
		if e.what == "start" {
			n++
		}
	}
	return n
}

// F6: a rolling restart by SIGTERM repeats nothing and loses nothing.
func TestARollingRestartRepeatsNothing(t *testing.T) {
	jobstest.EachMySQL(t, testARollingRestartRepeatsNothing)
}

func testARollingRestartRepeatsNothing(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	n := size(1200, 6000)
	l.enqueue(0, n, effect{Length: 10 * time.Millisecond})
	workers := []*process{startChild(t, l.config), startChild(t, l.config)}
	for round := range size(5, 20) {
		time.Sleep(200 * time.Millisecond)
		i := round % len(workers)
		workers[i].signal(syscall.SIGTERM)
		select {
		case <-workers[i].done:
		case <-time.After(l.config.Grace + 30*time.Second):
			t.Fatal("a worker goes on working after SIGTERM")
		}
		if workers[i].err != nil {
			t.Errorf("a worker ended with %v after SIGTERM", workers[i].err)
		}
		workers[i] = startChild(t, l.config)
	}
	l.sink.await(t, n, 2*time.Minute)
	l.empty()
	l.check(n)
	if starts := l.starts(); starts != n {
		t.Errorf("%d starts of %d jobs", starts, n)
	}
}

// F6: a restart that cuts jobs off releases them: they run again, uncounted.
func TestARestartThatCutsJobsOffChargesNothing(t *testing.T) {
	jobstest.EachMySQL(t, testARestartThatCutsJobsOffChargesNothing)
}

func testARestartThatCutsJobsOffChargesNothing(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	l.config.Grace = 100 * time.Millisecond
	n := size(16, 160)
	l.enqueue(0, n, effect{Length: time.Second})
	worker := startChild(t, l.config)
	for range size(2, 10) {
		before := l.starts()
		l.await("a start", func() bool { return l.starts() >= before+l.config.Slots })
		l.fault(worker.cmd.Process.Pid, time.Minute)
		worker.signal(syscall.SIGTERM)
		<-worker.done
		if worker.err != nil {
			t.Errorf("a worker ended with %v after SIGTERM", worker.err)
		}
		worker = startChild(t, l.config)
	}
	l.sink.await(t, n, 2*time.Minute)
	l.empty()
	l.check(n)
	if starts, charged := l.starts(), l.charged(); starts <= n || charged != 0 {
		t.Errorf("%d starts of %d jobs, %d attempts were charged; want more starts than jobs, and none charged",
			starts, n, charged)
	}
}

// await waits for a condition that a minute must bring about.
func (l *lab) await(what string, there func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(time.Minute); !there(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s does not come", what)
		}
	}
}

// F2: many jobs through 100 slots in 4 processes, without a fault: each effect
// once.
func TestAHundredSlotsInFourProcessesRunEachJobOnce(t *testing.T) {
	jobstest.EachMySQL(t, testAHundredSlotsInFourProcessesRunEachJobOnce)
}

func testAHundredSlotsInFourProcessesRunEachJobOnce(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	// No fault, not even that of a busy machine: a process that gets no
	// time for the length of a lease has lost it.
	l.config.Slots, l.config.Lease = 25, 10*time.Minute
	n := size(5000, 1_000_000)
	l.eachOnce(4, n, time.Duration(size(3, 120))*time.Minute)
}

// eachOnce lets processes do n jobs, each of which starts once.
func (l *lab) eachOnce(processes, n int, within time.Duration) {
	l.t.Helper()
	l.enqueue(0, n, effect{})
	begun := time.Now()
	for range processes {
		startChild(l.t, l.config)
	}
	l.sink.await(l.t, n, within)
	l.t.Logf("%d jobs in %d processes, their start included: %.0f jobs/s", n, processes,
		float64(n)/time.Since(begun).Seconds())
	l.empty()
	l.check(n)
	if starts := l.starts(); starts != n {
		l.t.Errorf("%d starts of %d jobs", starts, n)
	}
}

// F13: the server is away, read-only, or out of connections: no attempt is
// charged, and the work goes on by itself.
func TestAServerInTroubleChargesNoAttempt(t *testing.T) {
	jobstest.EachMySQL(t, testAServerInTroubleChargesNoAttempt)
}

func testAServerInTroubleChargesNoAttempt(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	// So long that no lease ends meanwhile. What a claim took whose COMMIT was not
	// answered is released after three quarters of it, uncounted.
	l.config.Lease = time.Duration(size(2, 5)) * time.Minute
	l.workAsNobody()
	n := 900
	l.enqueue(0, n, effect{Length: 10 * time.Millisecond})
	startChild(t, l.config)
	for i, trouble := range []func(time.Duration){l.readOnly, l.away, l.outOfConnections} {
		l.sink.await(t, 20+150*i, time.Minute)
		l.fault(0, time.Minute)
		trouble(time.Duration(size(1, 60)) * time.Second)
	}
	l.sink.await(t, n, 2*l.config.Lease)
	l.empty()
	l.check(n)
	for _, e := range l.sink.events {
		if e.attempt > 1 {
			t.Fatalf("job %d was charged attempt %d", e.key, e.attempt)
		}
	}
}

// workAsNobody gives the workers a separate account: neither read_only nor
// max_connections stops root.
func (l *lab) workAsNobody() {
	l.db.MustExec("CREATE USER worker@'%'")
	l.db.MustExec("GRANT ALL ON lab.* TO worker@'%'")
	l.config.DSN = strings.Replace(l.dsn, "root@", "worker@", 1)
}

func (l *lab) readOnly(length time.Duration) {
	l.db.MustExec("SET GLOBAL read_only = 1")
	time.Sleep(length)
	l.db.MustExec("SET GLOBAL read_only = 0")
}

func (l *lab) away(length time.Duration) {
	l.t.Helper()
	if err := l.server.Kill(); err != nil {
		l.t.Logf("killing the server: %v", err)
	}
	time.Sleep(length)
	if err := l.server.Start(); err != nil {
		l.t.Fatal(err)
	}
}

// outOfConnections takes more connections than the server then allows, and ends
// those of the workers.
func (l *lab) outOfConnections(length time.Duration) {
	l.t.Helper()
	ctx := context.Background()
	hoard, err := sqlx.Connect("mysql", l.dsn)
	if err != nil {
		l.t.Fatal(err)
	}
	defer hoard.Close()
	var held []*sqlx.Conn
	for range 12 {
		c, err := hoard.Connx(ctx)
		if err != nil {
			l.t.Fatal(err)
		}
		held = append(held, c)
		defer c.Close()
	}
	do := func(statement string) {
		l.t.Helper()
		if _, err := held[0].ExecContext(ctx, statement); err != nil {
			l.t.Fatalf("%s: %v", statement, err)
		}
	}
	do("SET GLOBAL max_connections = 10")
	var workers []int64 // KILL USER is MariaDB's alone
	if err := held[0].SelectContext(ctx, &workers,
		"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'worker'"); err != nil {
		l.t.Fatal(err)
	}
	for _, id := range workers {
		_, _ = held[0].ExecContext(ctx, fmt.Sprintf("KILL CONNECTION %d", id)) // it may have ended itself
	}
	time.Sleep(length)
	do("SET GLOBAL max_connections = 500")
}
