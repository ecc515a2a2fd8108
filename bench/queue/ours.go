package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/memory"
)

var noop = jobs.Kind[struct{}]{Name: "bench.noop", Queue: "default"}

// ours is cmsjobs on one database, store and worker as the service joins them.
type ours struct {
	server   *servers.Server
	db       *sqlx.DB
	dsn      string
	name     string
	registry *jobs.Registry
	store    *queue.Store
	wake     chan struct{}
	standing scene // what stage left in the table
}

func newOurs(ctx context.Context, s *servers.Server, indexed bool) (*ours, error) {
	o := &ours{server: s, registry: jobs.NewRegistry(), wake: make(chan struct{}, 1)}
	jobs.Handle(o.registry, noop, func(context.Context, jobs.Job, struct{}) error { return nil })
	var err error
	if o.db, o.dsn, o.name, err = s.CMS(ctx); err != nil {
		return nil, err
	}
	o.store, err = o.reopened(ctx)
	if err == nil && indexed {
		err = o.store.AddIndex(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, o.db.Close())
	}
	return o, nil
}

// reopened is a new store on the same tables, which has seen nothing yet.
func (o *ours) reopened(ctx context.Context) (*queue.Store, error) {
	return queue.Open(ctx, o.db, tables.Options{Registry: o.registry, Wake: func(string) {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}})
}

// cost is what a piece of work took.
type cost struct {
	jobs           int
	wall           time.Duration
	client, server time.Duration // processor time
}

func (c cost) rate() float64 { return float64(c.jobs) / c.wall.Seconds() }
func (c cost) clientJob() float64 {
	return float64(c.client.Microseconds()) / float64(c.jobs)
}
func (c cost) serverJob() float64 {
	return float64(c.server.Microseconds()) / float64(c.jobs)
}

// measure runs work that is done in this process.
func measure(s *servers.Server, n int, work func() error) (cost, error) {
	own, theirs, begun := servers.OwnCPU(), s.CPU(), time.Now()
	err := work()
	return cost{n, time.Since(begun), servers.OwnCPU() - own, s.CPU() - theirs}, err
}

// fill enqueues n jobs by the thousand.
func (o *ours) fill(ctx context.Context, n int, change func(jobs.Spec) jobs.Spec) error {
	for left := n; left > 0; left -= 1000 {
		list := make([]jobs.Spec, min(left, 1000))
		for i := range list {
			list[i] = change(noop.New(struct{}{}))
		}
		if _, err := o.store.Enqueue(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

func asItIs(n jobs.Spec) jobs.Spec { return n }

// enqueue calls Enqueue n times from so many callers.
func (o *ours) enqueue(ctx context.Context, n, callers int) (cost, error) {
	return measure(o.server, n/callers*callers, func() error {
		failed := make(chan error, callers)
		for range callers {
			go func() {
				for range n / callers {
					if _, err := o.store.Enqueue(ctx, noop.New(struct{}{})); err != nil {
						failed <- err
						return
					}
				}
				failed <- nil
			}()
		}
		var err error
		for range callers {
			err = errors.Join(err, <-failed)
		}
		return err
	})
}

func (o *ours) worker(slots, prefetch int, change func(*jobs.Config)) (*jobs.Worker, error) {
	host, _ := os.Hostname()
	c := jobs.Config{Source: o.store, Workers: o.store, Registry: o.registry, Now: time.Now, Wake: o.wake,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Info:   jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:bench", host, os.Getpid()), Host: host, PID: os.Getpid()},
		Slots:  slots, Prefetch: prefetch, LeastAhead: o.store.LeastAhead()}
	change(&c)
	return jobs.NewWorker(c)
}

// drain fills the queue and works it off, history and all.
func (o *ours) drain(ctx context.Context, n, slots, prefetch int) (cost, error) {
	if err := o.fill(ctx, n, asItIs); err != nil {
		return cost{}, err
	}
	var done atomic.Int64
	w, err := o.worker(slots, prefetch, func(c *jobs.Config) {
		c.StopWhenEmpty, c.Ended = true, func(jobs.Settlement) { done.Add(1) }
	})
	if err != nil {
		return cost{}, err
	}
	new(memory.Collector).Adapt() // as the service's workers do
	c, err := measure(o.server, n, func() error { return w.Run(ctx) })
	if err == nil && int(done.Load()) != n {
		err = fmt.Errorf("%d of %d jobs were done", done.Load(), n)
	}
	return c, err
}

// pickUp times from the call of Enqueue to the start of the handler in an idle
// worker that the enqueue wakes.
func (o *ours) pickUp(ctx context.Context, n int) ([]time.Duration, error) {
	registry := jobs.NewRegistry()
	started := make(chan time.Time, 1)
	jobs.Handle(registry, noop, func(context.Context, jobs.Job, struct{}) error { started <- time.Now(); return nil })
	settled := make(chan struct{}, 1)
	w, err := o.worker(1, 0, func(c *jobs.Config) {
		c.Registry, c.Ended = registry, func(jobs.Settlement) {
			settled <- struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { err = w.Run(working) })
	var times []time.Duration
	for range n {
		begun := time.Now()
		if _, failed := o.store.Enqueue(ctx, noop.New(struct{}{})); failed != nil {
			stop()
			group.Wait()
			return nil, failed
		}
		times = append(times, (<-started).Sub(begun))
		<-settled
	}
	stop()
	group.Wait()
	slices.Sort(times)
	return times, err
}
