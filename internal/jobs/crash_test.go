package jobs_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
)

// The points at which a worker may die, in the order of a job's life. The
// database is outside of it: what is written is written, what is not is not.
var crashPoints = []string{"before the claim", "after the claim", "before the effect", "after the effect",
	"before renewing", "after renewing", "before settling", "after settling", "before the heartbeat",
	"after the heartbeat"}

// F18: a worker dies by SIGKILL at each step of its work. Nothing is lost, what
// ran twice is explained by the death, and a job whose end was written does not
// run again.
func TestAWorkerThatDiesAtEachStepLosesNothing(t *testing.T) {
	jobstest.EachMySQL(t, testAWorkerThatDiesAtEachStepLosesNothing)
}

func testAWorkerThatDiesAtEachStepLosesNothing(t *testing.T, engine jobstest.Engine) {
	l := newLab(t, engine)
	n := size(400, 4000)
	// Some last longer than a third of the lease, so that there is something to
	// renew, and some fail once, so that not every end is a completion.
	l.enqueue(0, n-20, effect{Length: 2 * time.Millisecond})
	l.enqueue(n-20, 15, effect{Length: l.config.Lease / 2})
	l.enqueue(n-5, 5, effect{Fail: 1})
	for round := range size(1, 100) {
		for range crashPoints {
			l.enqueue(n, 1, effect{Length: l.config.Lease / 2}) // so that each step comes by
			n++
		}
		l.crashAtEachStep(1 + round%5)
	}
	startChild(t, l.config)
	l.sink.await(t, n, 5*time.Minute)
	l.empty()
	l.check(n)
}

// crashAtEachStep starts a worker a point and waits for their deaths.
func (l *lab) crashAtEachStep(on int) {
	l.t.Helper()
	workers, deaths := map[string]*process{}, make(chan fault, len(crashPoints))
	for _, point := range crashPoints {
		c := l.config
		c.CrashAt, c.CrashOn = point, on
		worker := startChild(l.t, c)
		workers[point] = worker
		go func() {
			<-worker.done
			now := time.Now()
			deaths <- fault{at: now, until: now, pid: worker.cmd.Process.Pid}
		}()
	}
	for range crashPoints {
		select {
		case f := <-deaths:
			l.faults = append(l.faults, f)
		case <-time.After(time.Minute):
			l.t.Fatal("a worker did not come by its point")
		}
	}
	for point, worker := range workers {
		if status, is := worker.cmd.ProcessState.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
			l.t.Errorf("%s the worker ended otherwise: %v", point, worker.err)
		}
	}
}

// pausedWithAnEndOnItsWay lets a worker finish a job and pauses it before it can
// write that. When it wakes, the job runs elsewhere: the end is not its to write.
func (l *lab) pausedWithAnEndOnItsWay(key int) {
	l.t.Helper()
	c := l.config
	c.CrashAt, c.CrashOn, c.CrashBy = "before settling", 1, jobstest.Pause
	l.enqueue(key, 1, effect{Length: 2 * l.config.Lease})
	sleeper := startChild(l.t, c)
	waitFor(l.t, "the worker's pause", sleeper.paused)
	l.fault(sleeper.cmd.Process.Pid, 2*l.config.Lease)
	other := startChild(l.t, l.config)
	waitFor(l.t, "the start elsewhere", func() bool { return l.startsOf(other.cmd.Process.Pid) == 1 })
	sleeper.signal(jobstest.Continue)
	waitFor(l.t, "the end elsewhere", func() bool {
		l.sink.mu.Lock()
		defer l.sink.mu.Unlock()
		return l.sink.ends[key] == 2
	})
	l.empty()
	var completed []int
	if err := l.db.Select(&completed, "SELECT attempt FROM cmsjobs_runs WHERE outcome = 'completed'"); err != nil {
		l.t.Fatal(err)
	}
	if !slices.Equal(completed, []int{2}) {
		l.t.Errorf("the job was completed by its attempts %v, want only the second", completed)
	}
	sleeper.kill()
	other.kill()
}

// paused says whether SIGSTOP has stopped the process.
func (p *process) paused() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return err == nil && found && state[0] == 'T'
}

// fragile is a store whose worker dies at one of the points, the so-manieth time
// that it comes by.
type fragile struct {
	*queue.Store
	by syscall.Signal // SIGKILL where it is 0

	mu sync.Mutex // guards what follows: jobs, ends and the heartbeat come by at once
	at string
	on int
}

// due says whether it is the time to die, once.
func (f *fragile) due(point string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if point != f.at {
		return false
	}
	if f.on--; f.on > 0 {
		return false
	}
	f.at = ""
	return true
}

func (f *fragile) pass(point string) {
	if f == nil || !f.due(point) {
		return
	}
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, jobstest.Continue)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(cmp.Or(f.by, syscall.SIGKILL)) // a pause ends here and goes on
	}
	<-woken // the other signal is on its way
}

func (f *fragile) Claim(ctx context.Context, r jobs.ClaimRequest) ([]jobs.Claimed, error) {
	f.pass("before the claim")
	got, err := f.Store.Claim(ctx, r)
	if len(got) > 0 {
		f.pass("after the claim")
	}
	return got, err
}

func (f *fragile) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	f.pass("before renewing")
	defer f.pass("after renewing")
	return f.Store.Renew(ctx, leases, length)
}

func (f *fragile) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	f.pass("before settling")
	defer f.pass("after settling")
	return f.Store.Settle(ctx, ends)
}

func (f *fragile) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, r jobs.ClaimRequest) ([]error,
	[]jobs.Claimed, error) {
	f.pass("before settling")
	defer f.pass("after settling")
	return f.Store.SettleAndClaim(ctx, ends, r)
}

func (f *fragile) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	f.pass("before the heartbeat")
	defer f.pass("after the heartbeat")
	return f.Store.Heartbeat(ctx, w)
}
