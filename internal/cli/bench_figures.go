package cli

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

// figure is one measured number.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	digits int
}

type bench struct {
	a            *commandLine
	r            *app.Services
	jobs, probes int
	depths       []int
	idle         time.Duration
	guest        bool // the database is not bench's own
}

func (b *bench) run(ctx context.Context) ([]figure, error) {
	var figures []figure
	for _, step := range []func(context.Context) ([]figure, error){b.enqueueSingly, b.enqueueInBulk, b.workOff, b.pickUp, b.idling, b.claimDeep} {
		found, err := step(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, found...)
	}
	return append(figures, figure{"memory, resident, after all of it", float64(memory.Resident()) / (1 << 20), "MiB", 1}), nil
}

func (b *bench) enqueueSingly(ctx context.Context) ([]figure, error) {
	n := min(b.jobs, 1000)
	started := b.a.Now()
	for range n {
		if _, err := b.r.Store.Enqueue(ctx, benchKind.New(struct{}{})); err != nil {
			return nil, err
		}
	}
	one := b.a.Now().Sub(started)
	started = b.a.Now()
	group, within := errgroup.WithContext(ctx)
	for range 10 {
		group.Go(func() error {
			for range n / 10 {
				if _, err := b.r.Store.Enqueue(within, benchKind.New(struct{}{})); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return []figure{perSecond("enqueue one by one, 1 caller", n, one), perSecond("enqueue one by one, 10 callers", n/10*10, b.a.Now().Sub(started))}, err
}

func (b *bench) enqueueInBulk(ctx context.Context) ([]figure, error) {
	started := b.a.Now()
	if err := b.fill(ctx, b.jobs); err != nil {
		return nil, err
	}
	return []figure{perSecond("enqueue by the thousand", b.jobs, b.a.Now().Sub(started))}, nil
}

// fill enqueues so many jobs by the thousand.
func (b *bench) fill(ctx context.Context, n int) error {
	for left := n; left > 0; left -= 1000 {
		list := make([]jobs.Spec, min(left, 1000))
		for i := range list {
			list[i] = benchKind.New(struct{}{})
		}
		if _, err := b.r.Store.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

func perSecond(name string, n int, took time.Duration) figure {
	return figure{name, float64(n) / took.Seconds(), "jobs/s", 0}
}

// workOff works until the queue is empty.
func (b *bench) workOff(ctx context.Context) ([]figure, error) {
	var done atomic.Int64
	w, closeIt, err := b.r.Worker(app.WorkerOptions{StopWhenEmpty: true, Ended: func(jobs.Settlement) { done.Add(1) }})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	started := b.a.Now()
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	return []figure{perSecond(fmt.Sprintf("worked off, %d slots, with history", b.r.Config.Queue.Concurrency), int(done.Load()), b.a.Now().Sub(started))}, ctx.Err()
}

// claimDeep times single claims over few and over many waiting jobs, then takes
// what it enqueued away again.
func (b *bench) claimDeep(ctx context.Context) ([]figure, error) {
	var figures []figure
	waiting := 0
	for _, depth := range b.depths {
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
		figures = append(figures, figure{fmt.Sprintf("one claim over %d waiting jobs, median", depth), share(times, 0.5), "ms", 2},
			figure{"the same, 99th percentile", share(times, 0.99), "ms", 2})
	}
	if !b.guest {
		return figures, nil // the whole database goes
	}
	return figures, b.clear(ctx)
}

// clear takes away what waits.
func (b *bench) clear(ctx context.Context) error {
	mine := jobs.Filter{Queues: []string{benchQueue}, Statuses: []jobs.Status{jobs.StatusQueued}}
	for n := int64(1); n > 0; {
		var err error
		if n, err = b.r.History.Cancel(ctx, mine, 5000); err != nil {
			return err
		}
	}
	return nil
}

// idling watches a worker that has nothing to do, once its polls are as far
// apart as they get.
func (b *bench) idling(ctx context.Context) ([]figure, error) {
	if b.idle <= 0 {
		return nil, nil
	}
	w, closeIt, err := b.r.Worker(app.WorkerOptions{})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	working, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return w.Run(working) })
	b.pause(ctx, 2*b.r.Config.Queue.Poll)
	debug.FreeOSMemory() // of the work before
	asked, used := b.r.Store.Statements(), processorTime()
	b.pause(ctx, b.idle)
	seconds := b.idle.Seconds()
	figures := []figure{{"an idle worker asks", float64(b.r.Store.Statements()-asked) / seconds, "queries/s", 2},
		{"and uses of a core", 100 * (processorTime() - used).Seconds() / seconds, "%", 3},
		{"and occupies, resident", float64(memory.Resident()) / (1 << 20), "MiB", 1}}
	stop()
	return figures, group.Wait()
}

func (b *bench) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// claims claims one job at a time and gives it back at once.
func (b *bench) claims(ctx context.Context) ([]time.Duration, error) {
	var times []time.Duration
	for range b.probes {
		started := b.a.Now()
		got, err := b.r.Store.Claim(ctx, jobs.ClaimRequest{Worker: "bench", Queues: []string{benchQueue}, Limit: 1, Lease: time.Minute})
		took := b.a.Now().Sub(started)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			continue
		}
		times = append(times, took)
		if _, err := b.r.Store.Settle(ctx, []jobs.Settlement{{Claimed: got[0], Outcome: jobs.Completed, Worker: "bench"}}); err != nil {
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
func (b *bench) pickUp(ctx context.Context) ([]figure, error) {
	ended := make(chan struct{}, 1)
	w, closeIt, err := b.r.Worker(app.WorkerOptions{Ended: func(jobs.Settlement) { ended <- struct{}{} }})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	working, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return w.Run(working) })
	var times []time.Duration
	for range b.probes {
		started := b.a.Now()
		if _, err = b.r.Store.Enqueue(ctx, benchKind.New(struct{}{})); err != nil {
			break
		}
		select {
		case <-ended:
			times = append(times, b.a.Now().Sub(started))
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
	return []figure{{"enqueued, run and settled by an idle worker, median", share(times, 0.5), "ms", 2}, {"the same, 99th percentile", share(times, 0.99), "ms", 2}}, nil
}
