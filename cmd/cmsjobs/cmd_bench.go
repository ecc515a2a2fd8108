package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
)

// benchQueue keeps bench's jobs apart from everything else.
const benchQueue = "cmsjobs-bench"

// benchKind does nothing.
var benchKind = jobs.Kind[struct{}]{Name: "cmsjobs.bench", Queue: benchQueue}

func (a *app) benchCommand() *cobra.Command {
	var o struct {
		jobs, slots, probes, depth int
		here                       bool
	}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast jobs are enqueued, picked up and worked",
		Long: `Measures jobs that do nothing: enqueued one by one and in bulk, worked off, picked up by an idle worker,
claimed over a few and over many waiting ones, and the memory that it takes. By default on a SQLite database of its own in a temporary folder; --here
measures on the configured database, in the queue "cmsjobs-bench", and leaves its history there.`,
		Example: "  cmsjobs bench\n  cmsjobs --dsn mysql://root@127.0.0.1/bench bench --here --jobs 20000 --slots 100",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var r *rooms
			var err error
			if o.here {
				r, err = a.openLoaded(c.Context(), benchFlags(o.slots)...)
			} else {
				var dir string
				if dir, err = os.MkdirTemp("", "cmsjobs-bench-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				r, err = a.openBench(c.Context(), dir, o.slots)
			}
			if err != nil {
				return err
			}
			defer a.closing(r)
			jobs.Handle(r.registry, benchKind, func(context.Context, jobs.Job, struct{}) error { return nil })
			b := &bench{a: a, r: r, jobs: o.jobs, probes: o.probes, depth: o.depth}
			figures, err := b.run(c.Context())
			if err != nil {
				return err
			}
			cells := make([][]string, len(figures))
			for i, f := range figures {
				cells[i] = []string{f.Name, fmt.Sprintf("%.*f", f.digits, f.Value), f.Unit}
			}
			return a.list(map[string]any{"store": r.store.Describe(), "slots": o.slots, "jobs": o.jobs, "figures": figures}, []string{"FIGURE", "VALUE", "UNIT"}, cells, "")
		},
	}
	c.Flags().IntVar(&o.jobs, "jobs", 10000, "how many jobs are worked off")
	c.Flags().IntVar(&o.slots, "slots", 10, "slots of the worker")
	c.Flags().IntVar(&o.probes, "probes", 100, "how many pick-ups are timed")
	c.Flags().IntVar(&o.depth, "depth", 100000, "how many waiting jobs a claim is measured over")
	c.Flags().BoolVar(&o.here, "here", false, "measure on the configured database")
	return c
}

func benchFlags(slots int) []config.Flag {
	return []config.Flag{{Path: "queue.queues", Value: benchQueue, Name: "bench"}, {Path: "queue.concurrency", Value: fmt.Sprint(slots), Name: "bench"},
		{Path: "queue.prefetch", Value: fmt.Sprint(min(slots*10, 10000)), Name: "bench"}, {Path: "log.level", Value: "warn", Name: "bench"}}
}

func (a *app) openBench(ctx context.Context, dir string, slots int) (*rooms, error) {
	path := filepath.Join(dir, "bench.sqlite")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	db, err := sqlstore.Connect(ctx, sqlstore.ConnectOptions{DSN: "sqlite:" + path})
	if err != nil {
		return nil, err
	}
	if _, err := sqlstore.CreateTables(ctx, db, sqlstore.Stock, ""); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	empty := filepath.Join(dir, "cmsjobs.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return nil, err
	}
	flags := append(benchFlags(slots), config.Flag{Path: "database.dsn", Value: "sqlite:" + path, Name: "bench"})
	l, err := config.Load(config.Sources{File: empty, Flags: flags})
	if err != nil {
		return nil, err
	}
	return a.open(ctx, l)
}

// figure is one measured number.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	digits int
}

type bench struct {
	a                   *app
	r                   *rooms
	jobs, probes, depth int
}

func (b *bench) run(ctx context.Context) ([]figure, error) {
	var figures []figure
	for _, step := range []func(context.Context) ([]figure, error){b.enqueueSingly, b.enqueueInBulk, b.workOff, b.pickUp, b.claimDeep} {
		found, err := step(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, found...)
	}
	return append(figures, figure{"memory, resident", float64(residentMemory()) / (1 << 20), "MiB", 1}), nil
}

func (b *bench) enqueueSingly(ctx context.Context) ([]figure, error) {
	n := min(b.jobs, 1000)
	started := b.a.now()
	for range n {
		if _, err := b.r.store.Enqueue(ctx, benchKind.Of(struct{}{})); err != nil {
			return nil, err
		}
	}
	one := b.a.now().Sub(started)
	started = b.a.now()
	group, within := errgroup.WithContext(ctx)
	for range 10 {
		group.Go(func() error {
			for range n / 10 {
				if _, err := b.r.store.Enqueue(within, benchKind.Of(struct{}{})); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return []figure{perSecond("enqueue one by one, 1 caller", n, one), perSecond("enqueue one by one, 10 callers", n/10*10, b.a.now().Sub(started))}, err
}

func (b *bench) enqueueInBulk(ctx context.Context) ([]figure, error) {
	started := b.a.now()
	if err := b.fill(ctx, b.jobs); err != nil {
		return nil, err
	}
	return []figure{perSecond("enqueue by the thousand", b.jobs, b.a.now().Sub(started))}, nil
}

// fill enqueues so many jobs by the thousand.
func (b *bench) fill(ctx context.Context, n int) error {
	for left := n; left > 0; left -= 1000 {
		list := make([]jobs.New, min(left, 1000))
		for i := range list {
			list[i] = benchKind.Of(struct{}{})
		}
		if _, err := b.r.store.Enqueue(ctx, list...); err != nil {
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
	w, closeIt, err := b.r.worker(workerOptions{stopWhenEmpty: true, ended: func(jobs.Settlement) { done.Add(1) }})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	started := b.a.now()
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	return []figure{perSecond(fmt.Sprintf("worked off, %d slots, with history", b.r.config.Queue.Concurrency), int(done.Load()), b.a.now().Sub(started))}, ctx.Err()
}

// claimDeep times single claims over few and over many waiting jobs, then takes
// what it enqueued away again.
func (b *bench) claimDeep(ctx context.Context) ([]figure, error) {
	var figures []figure
	waiting := 0
	for _, depth := range []int{min(1000, b.depth), b.depth} {
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
	for n := int64(1); n > 0; {
		var err error
		if n, err = b.r.store.Cancel(ctx, jobs.Filter{Queues: []string{benchQueue}, States: []jobs.State{jobs.StateQueued}}, 5000); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// claims claims one job at a time and gives it back at once.
func (b *bench) claims(ctx context.Context) ([]time.Duration, error) {
	var times []time.Duration
	for range b.probes {
		started := b.a.now()
		got, err := b.r.store.Claim(ctx, jobs.ClaimRequest{Worker: "bench", Queues: []string{benchQueue}, Limit: 1, Lease: time.Minute})
		took := b.a.now().Sub(started)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			continue
		}
		times = append(times, took)
		if _, err := b.r.store.Settle(ctx, []jobs.Settlement{{Claimed: got[0], Verdict: jobs.Completed, Worker: "bench"}}); err != nil {
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
	w, closeIt, err := b.r.worker(workerOptions{ended: func(jobs.Settlement) { ended <- struct{}{} }})
	if err != nil {
		return nil, err
	}
	defer closeIt()
	working, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return w.Run(working) })
	var times []time.Duration
	for range b.probes {
		started := b.a.now()
		if _, err = b.r.store.Enqueue(ctx, benchKind.Of(struct{}{})); err != nil {
			break
		}
		select {
		case <-ended:
			times = append(times, b.a.now().Sub(started))
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
