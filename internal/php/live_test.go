//go:build unix

package php_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// live is a pool with heartbeats, and what people see of it.
type live struct {
	*site
	queue   *queue.Store
	history *history.Store
	beats   *php.Heartbeat // nil: another worker's
	ended   chan error     // of the heartbeats
}

// watch starts a pool and its heartbeats.
func watch(s *site, c php.Config, change func(*live)) *live {
	s.t.Helper()
	opened, err := tables.Open(s.t.Context(), s.db.DB, tables.Options{Registry: jobs.NewRegistry(), RetryAfter: lease})
	if err != nil {
		s.t.Fatal(err)
	}
	l := &live{site: s, history: history.New(opened), ended: make(chan error, 1)}
	if l.queue, err = queue.New(s.t.Context(), opened); err != nil {
		s.t.Fatal(err)
	}
	c.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	pool, stop := s.startPool(c)
	l.beats = &php.Heartbeat{Registry: l.queue, Info: jobs.WorkerInfo{ID: "test:1", Host: "test", PID: 1},
		Pools: php.Pools{pool}, Busy: 20 * time.Millisecond, Idle: 20 * time.Millisecond, Now: time.Now, Logger: c.Logger}
	if change != nil {
		change(l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	if l.beats != nil {
		group.Go(func() { l.ended <- l.beats.Run(ctx) })
	}
	s.t.Cleanup(func() {
		cancel()
		group.Wait()
		stop()
	})
	return l
}

// job is the one that runs, as a page shows it.
func (l *live) job() jobs.Record {
	l.t.Helper()
	list, err := l.history.Jobs(l.t.Context(), jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}},
		jobs.Page{Limit: 10})
	if err != nil || len(list.Items) != 1 {
		l.t.Fatalf("%d jobs run, %v", len(list.Items), err)
	}
	return list.Items[0]
}

func (l *live) progress(want jobs.Progress) func() bool {
	return func() bool {
		p := l.job().Progress
		return p != nil && *p == want
	}
}

func (l *live) log() (texts []string) {
	l.t.Helper()
	if err := l.db.Select(&texts, "SELECT line FROM cmsjobs_job_logs ORDER BY id"); err != nil {
		l.t.Fatal(err)
	}
	return texts
}

func (l *live) logs(text string) func() bool {
	return func() bool { return slices.Contains(l.log(), text) }
}

func (l *live) touch(file string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, file), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// process is the only one of the worker.
func (l *live) process() jobs.PHPProcess {
	l.t.Helper()
	list, err := l.history.Workers(l.t.Context())
	if err != nil || len(list) != 1 || len(list[0].PHP) != 1 {
		l.t.Fatalf("workers %+v, %v", list, err)
	}
	return list[0].PHP[0]
}

func TestARunningJobIsSeenLive(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			r := rigOn(t, engine, 1, laravels)
			seesLive(watch(r.site, r.config("talk", func(c *php.Config) { c.Timeout = time.Minute }), nil))
		})
	}
}

func TestARunningJobOfLaravelIsSeenLive(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newSite(t, engine, lease)
		s.push("default", "talk", "{}")
		seesLive(watch(s, s.config("default"), nil))
	})
}

func seesLive(l *live) {
	t := l.t
	l.await("the first line is in the log", time.Minute, l.logs("begun"))
	j, p := l.job(), l.process()
	if !j.Foreign || j.Worker != "test:1" || j.Process != p.PID || p.PID == 0 || time.Since(j.StartedAt) > time.Minute ||
		!j.Deadline.Equal(j.StartedAt.Add(time.Minute)) || j.Detail != "" {
		t.Errorf("the running job is %+v, the process %+v", j, p)
	}
	if p.Queue != "default" || p.Job == nil || p.Job.UUID != j.UUID || p.Done != 0 || p.StartedAt.After(p.Job.Since) {
		t.Errorf("the process is %+v", p)
	}
	l.await("its progress is seen", time.Minute, l.progress(jobs.Progress{Done: 1, Total: 3, Note: "password=***"}))
	l.touch("more")
	l.await("it is said again", time.Minute, l.progress(jobs.Progress{Done: 3, Total: 3}))
	l.await("what it printed later is in the log, without secrets", time.Minute, l.logs("password=***"))
	l.job() // it goes on
	l.touch("end")
	l.drained("default", time.Minute)
	if log := l.log(); !slices.Equal(log, []string{"begun", "password=***", "done"}) {
		t.Errorf("the log has %q", log)
	}
	l.await("the process is free", time.Minute, func() bool { p := l.process(); return p.Job == nil && p.Done == 1 })
	if stats, err := l.history.Stats(t.Context()); err != nil || len(stats.Queues) != 1 || stats.Queues[0].PHPProcesses != 1 ||
		stats.Queues[0].Workers != 0 {
		t.Errorf("the queues are %+v, %v", stats.Queues, err)
	}
}

// What a job prints while it runs counts towards its bound of lines.
func TestTheLiveLogIsBounded(t *testing.T) {
	r := newRig(t, 1, laravels)
	l := watch(r.site, r.config("chatter", nil), nil)
	l.await("its first lines are in the log", time.Minute, func() bool { return len(l.log()) == 900 })
	l.touch("more")
	l.await("those up to the bound are", 15*time.Second, func() bool { return len(l.log()) == 1000 })
	l.touch("end")
	l.drained("default", time.Minute)
	log := l.log()
	if len(log) != 1001 || log[0] != "line 0" || log[999] != "line 999" || log[1000] != "(500 more lines were dropped)" {
		t.Errorf("%d lines, the last: %q", len(log), log[len(log)-1])
	}
}

// away refuses heartbeats, as a database that is out.
type away struct {
	jobs.WorkerRegistry
	refuse int
	lines  int // in the refused ones
}

var errAway = errors.New("the database is out")

func (a *away) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	for _, p := range w.PHP {
		if a.refuse > 0 && p.Job != nil && len(p.Job.Lines) > 0 {
			a.refuse, a.lines = a.refuse-1, a.lines+len(p.Job.Lines)
			return jobs.ControlSignals{}, errAway
		}
	}
	return a.WorkerRegistry.Heartbeat(ctx, w)
}

func TestLinesOfARefusedHeartbeatComeLater(t *testing.T) {
	r := newRig(t, 1, laravels)
	a := &away{refuse: 2}
	l := watch(r.site, r.config("talk", nil), func(l *live) { a.WorkerRegistry, l.beats.Registry = l.beats.Registry, a })
	l.await("the first line is in the log", time.Minute, l.logs("begun"))
	l.touch("more")
	l.touch("end")
	l.drained("default", time.Minute)
	if log := l.log(); !slices.Equal(log, []string{"begun", "password=***", "done"}) || a.lines != 2 {
		t.Errorf("the log has %q; %d lines were refused", log, a.lines)
	}
}

// A job whose worker is gone is shown as stalled, not as running for ever.
func TestAJobOfPHPsWhoseLeaseIsOverIsStalled(t *testing.T) {
	r := newRig(t, 1, laravels)
	l := watch(r.site, r.config("talk", nil), nil)
	l.await("it runs", time.Minute, l.logs("begun"))
	l.db.MustExec(fmt.Sprintf("UPDATE jobs SET reserved_at = reserved_at - %d", 2*int(lease.Seconds())))
	if j := l.job(); j.Detail != "stalled" {
		t.Errorf("the job is %+v", j)
	}
	l.touch("more")
	l.touch("end")
}

func TestAPersonStopsAProgramOfPHPProcesses(t *testing.T) {
	r := newRig(t, 0, "")
	l := watch(r.site, r.config("talk", nil), nil)
	l.await("it has said that it lives", time.Minute, func() bool { return l.count("cmsjobs_workers") == 1 })
	if known, err := l.history.Stop(t.Context(), "test:1"); !known || err != nil {
		t.Fatal(known, err)
	}
	select {
	case err := <-l.ended:
		if err != nil || l.count("cmsjobs_workers") != 0 {
			t.Errorf("it ended with %v; %d workers are listed", err, l.count("cmsjobs_workers"))
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// A worker says what the PHP processes beside it do, as often as with jobs in its slots.
func TestAWorkerSaysWhatItsPHPProcessesDo(t *testing.T) {
	r := newRig(t, 1, laravels)
	signalled := make(chan struct{}, 1)
	l := watch(r.site, r.config("talk", nil), func(l *live) { l.workWith(signalled) })
	l.await("the job has begun", time.Minute, func() bool {
		signalled <- struct{}{}
		return slices.Contains(l.log(), "begun")
	})
	l.touch("more")
	// Before the job has waited for too long, and dies.
	l.await("the next line came without a signal", 15*time.Second, l.logs("password=***"))
	list, err := l.history.Workers(t.Context())
	if err != nil || len(list) != 1 || list[0].Slots != 1 || len(list[0].Running) != 0 || len(list[0].PHP) != 1 ||
		list[0].PHP[0].Job == nil || !list[0].RunsTypes() {
		t.Errorf("the workers are %+v, %v", list, err)
	}
	l.touch("end")
	l.drained("default", time.Minute)
}

// workWith runs a worker in place of the heartbeats. It beats when it is signalled, and
// often while jobs run.
func (l *live) workWith(signalled <-chan struct{}) {
	w, err := jobs.NewWorker(jobs.Config{Source: l.queue, Workers: l.queue, Registry: jobs.NewRegistry(),
		Logger: l.beats.Logger, Now: time.Now, Info: jobs.WorkerInfo{ID: "test:1", Host: "test", PID: 1},
		Queues: []string{"ours"}, PHP: l.beats.Pools, BeatIdle: time.Hour, BeatBusy: 20 * time.Millisecond,
		Signalled: signalled})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := w.Run(ctx); err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	l.beats = nil
}
