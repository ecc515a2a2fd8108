package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/memory"
)

// Queue keeps the jobs that are measured apart from everything else.
const Queue = "cmsjobs-bench"

// probe does nothing.
var probe = jobs.Kind[struct{}]{Name: "cmsjobs.bench", Queue: Queue}

// Figure is one measured number.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Digits int     `json:"-"` // behind the point
}

// Bench is what is measured.
type Bench struct {
	Services *app.Services
	Now      func() time.Time
	Jobs     int           // how many are worked off
	Probes   int           // how many pick-ups are timed
	Depths   []int         // over how many waiting jobs claims are measured, fewest first
	Idle     time.Duration // how long an idle worker is watched; 0 leaves it out
	Guest    bool          // the database is not the bench's own
}

// Run measures one figure after the other.
func (b *Bench) Run(ctx context.Context) ([]Figure, error) {
	jobs.Handle(b.Services.Registry, probe, func(context.Context, jobs.Job, struct{}) error { return nil })
	var figures []Figure
	for _, step := range []func(context.Context) ([]Figure, error){b.enqueueSingly, b.enqueueInBulk, b.workOff,
		b.pickUp, b.idling, b.claimDeep} {
		found, err := step(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, found...)
	}
	return append(figures, Figure{"memory, resident, after all of it", float64(memory.Resident()) / (1 << 20), "MiB",
		1}), nil
}

func (b *Bench) enqueueSingly(ctx context.Context) ([]Figure, error) {
	n := min(b.Jobs, 1000)
	started := b.Now()
	for range n {
		if _, err := b.Services.Store.Enqueue(ctx, probe.New(struct{}{})); err != nil {
			return nil, err
		}
	}
	one := b.Now().Sub(started)
	started = b.Now()
	group, within := errgroup.WithContext(ctx)
	for range 10 {
		group.Go(func() error {
			for range n / 10 {
				if _, err := b.Services.Store.Enqueue(within, probe.New(struct{}{})); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return []Figure{perSecond("enqueue one by one, 1 caller", n, one), perSecond("enqueue one by one, 10 callers",
		n/10*10, b.Now().Sub(started))}, err
}

func (b *Bench) enqueueInBulk(ctx context.Context) ([]Figure, error) {
	started := b.Now()
	if err := b.fill(ctx, b.Jobs); err != nil {
		return nil, err
	}
	return []Figure{perSecond("enqueue by the thousand", b.Jobs, b.Now().Sub(started))}, nil
}

// fill enqueues so many jobs by the thousand.
func (b *Bench) fill(ctx context.Context, n int) error {
	for left := n; left > 0; left -= 1000 {
		list := make([]jobs.Spec, min(left, 1000))
		for i := range list {
			list[i] = probe.New(struct{}{})
		}
		if _, err := b.Services.Store.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

func perSecond(name string, n int, took time.Duration) Figure {
	return Figure{name, float64(n) / took.Seconds(), "jobs/s", 0}
}

// workOff works until the queue is empty.
func (b *Bench) workOff(ctx context.Context) ([]Figure, error) {
	var done atomic.Int64
	w, closeIt, err := b.Services.Worker(app.WorkerOptions{StopWhenEmpty: true, Ended: func(jobs.Settlement) {
		done.Add(1)
	}})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	started := b.Now()
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	return []Figure{perSecond(fmt.Sprintf("worked off, %d slots, with history", b.Services.Config.Queue.Concurrency),
		int(done.Load()), b.Now().Sub(started))}, ctx.Err()
}

// claimDeep times single claims over few and over many waiting jobs, then takes
// what it enqueued away again.
func (b *Bench) claimDeep(ctx context.Context) ([]Figure, error) {
	var figures []Figure
	waiting := 0
	for _, depth := range b.Depths {
		if depth < waiting {
			return nil, app.Usagef("--depth counts up: %d comes after %d", depth, waiting)
		}
		if err := b.fill(ctx, depth-waiting); err != nil {
			return nil, err
		}
		waiting = depth
		times, err := b.claims(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{fmt.Sprintf("one claim over %d waiting jobs, median", depth),
			share(times, 0.5), "ms", 2},
			Figure{"the same, 99th percentile", share(times, 0.99), "ms", 2})
	}
	if !b.Guest {
		return figures, nil // the whole database goes
	}
	return figures, b.clear(ctx)
}

// clear takes away what waits.
func (b *Bench) clear(ctx context.Context) error {
	mine := jobs.Filter{Queues: []string{Queue}, Statuses: []jobs.Status{jobs.StatusQueued}}
	for n := int64(1); n > 0; {
		var err error
		if n, err = b.Services.History.Cancel(ctx, mine, 5000); err != nil {
			return err
		}
	}
	return nil
}

// idling watches a worker that has nothing to do, once its polls are as far
// apart as they get.
func (b *Bench) idling(ctx context.Context) ([]Figure, error) {
	if b.Idle <= 0 {
		return nil, nil
	}
	w, closeIt, err := b.Services.Worker(app.WorkerOptions{})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return w.Run(working) })
	b.pause(ctx, 2*b.Services.Config.Queue.Poll)
	debug.FreeOSMemory() // of the work before
	asked, used := b.Services.Store.Statements(), processorTime()
	b.pause(ctx, b.Idle)
	seconds := b.Idle.Seconds()
	figures := []Figure{{"an idle worker asks", float64(b.Services.Store.Statements()-asked) / seconds, "queries/s", 2},
		{"and uses of a core", 100 * (processorTime() - used).Seconds() / seconds, "%", 3},
		{"and occupies, resident", float64(memory.Resident()) / (1 << 20), "MiB", 1}}
	stop()
	return figures, group.Wait()
}

func (b *Bench) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// claims claims one job at a time and releases it at once.
func (b *Bench) claims(ctx context.Context) ([]time.Duration, error) {
	var times []time.Duration
	for range b.Probes {
		started := b.Now()
		got, err := b.Services.Store.Claim(ctx, jobs.ClaimRequest{Worker: "bench", Queues: []string{Queue}, Limit: 1,
			Lease: time.Minute})
		took := b.Now().Sub(started)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			continue
		}
		times = append(times, took)
		if _, err := b.Services.Store.Settle(ctx, []jobs.Settlement{
			{Claimed: got[0], Outcome: jobs.Completed, Worker: "bench"}}); err != nil {
			return nil, err
		}
	}
	if len(times) == 0 {
		return nil, errors.New("no job could be claimed: is another worker emptying the queue cmsjobs-bench?")
	}
	slices.Sort(times)
	return times, nil
}

// share is the value below which this share of sorted times lies, in ms.
func share(times []time.Duration, part float64) float64 {
	return float64(times[int(part*float64(len(times)-1))].Microseconds()) / 1000
}

// pickUp times from the call of Enqueue to the end of the job, on an idle
// worker that is woken.
func (b *Bench) pickUp(ctx context.Context) ([]Figure, error) {
	ended := make(chan struct{}, 1)
	w, closeIt, err := b.Services.Worker(app.WorkerOptions{Ended: func(jobs.Settlement) { ended <- struct{}{} }})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	working, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return w.Run(working) })
	var times []time.Duration
	for range b.Probes {
		started := b.Now()
		if _, err = b.Services.Store.Enqueue(ctx, probe.New(struct{}{})); err != nil {
			break
		}
		select {
		case <-ended:
			times = append(times, b.Now().Sub(started))
		case <-ctx.Done():
		}
	}
	stop()
	if failed := group.Wait(); err == nil {
		err = failed
	}
	if err != nil || len(times) == 0 {
		return nil, err
	}
	slices.Sort(times)
	return []Figure{{"enqueued, run and settled by an idle worker, median", share(times, 0.5), "ms", 2},
		{"the same, 99th percentile", share(times, 0.99), "ms", 2}}, nil
}
