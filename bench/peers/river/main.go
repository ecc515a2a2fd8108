package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type noop struct {
	Made int64 `json:"made"`
}

func (noop) Kind() string { return "noop" }

// worker counts, and tells when a job started.
type worker struct {
	river.WorkerDefaults[noop]
	done    *atomic.Int64
	want    int64
	all     chan struct{}
	started func(time.Time)
}

func (w *worker) Work(_ context.Context, _ *river.Job[noop]) error {
	if w.started != nil {
		w.started(time.Now())
	}
	if w.done.Add(1) == w.want {
		close(w.all)
	}
	return nil
}

// line is one figure.
type line struct {
	Name      string    `json:"name"`
	Jobs      int       `json:"jobs"`
	Seconds   float64   `json:"seconds,omitempty"`
	ClientCPU float64   `json:"clientCpu,omitempty"` // seconds
	Times     []float64 `json:"times,omitempty"`     // ms, sorted
}

func main() {
	dsn := flag.String("dsn", "", "postgres://…")
	n := flag.Int("jobs", 20000, "jobs")
	refill := flag.Bool("refill", false, "only leave so many jobs in the table")
	workers := flag.Int("workers", 0, "only be one of many processes, with so many workers (bench/fleet)")
	cooldown := flag.Duration("cooldown", time.Millisecond, "with -workers: between fetches; polls: ten times")
	flag.Parse()
	var steps []step
	switch {
	case *refill:
		steps = []step{(*bench).migrate, (*bench).refill}
	case *workers > 0:
		*n, steps = *workers, []step{func(b *bench, ctx context.Context, n int) error {
			return b.workers(ctx, n, *cooldown)
		}}
	default:
		steps = []step{(*bench).migrate, (*bench).enqueueOne, (*bench).enqueueTen, (*bench).bulk, (*bench).tuned,
			(*bench).deep, (*bench).defaults, (*bench).pickUp}
	}
	if err := run(context.Background(), *dsn, *n, steps); err != nil {
		log.Fatal(err)
	}
}

// step is a part of the measurement, with so many jobs.
type step func(*bench, context.Context, int) error

func run(ctx context.Context, dsn string, n int, steps []step) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	b := &bench{pool: pool, out: json.NewEncoder(os.Stdout)}
	for _, step := range steps {
		if err := step(b, ctx, n); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	pool *pgxpool.Pool
	out  *json.Encoder
}

// migrate makes River's tables.
func (b *bench) migrate(ctx context.Context, _ int) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(b.pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (b *bench) client(c *river.Config) (*river.Client[pgx.Tx], error) {
	c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return river.NewClient(riverpgxv5.New(b.pool), c)
}

func (b *bench) measure(name string, n int, work func() error) error {
	cpu, begun := used(), time.Now()
	err := work()
	l := line{Name: name, Jobs: n, Seconds: time.Since(begun).Seconds(), ClientCPU: (used() - cpu).Seconds()}
	if err != nil {
		return err
	}
	return b.out.Encode(l)
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (b *bench) enqueueOne(ctx context.Context, n int) error {
	return b.enqueue(ctx, min(n/10, 1000), 1)
}
func (b *bench) enqueueTen(ctx context.Context, n int) error {
	return b.enqueue(ctx, min(n/5, 3000), 10)
}

func (b *bench) enqueue(ctx context.Context, n, callers int) error {
	c, err := b.client(&river.Config{})
	if err != nil {
		return err
	}
	name := map[int]string{1: "enqueue 1", 10: "enqueue 10"}[callers]
	return b.measure(name, n, func() error {
		var group sync.WaitGroup
		failed := make(chan error, callers)
		for range callers {
			group.Go(func() {
				for range n / callers {
					if _, err := c.Insert(ctx, noop{}, nil); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		group.Wait()
		close(failed)
		return <-failed
	})
}

// bulk inserts by COPY, River's fastest way.
func (b *bench) bulk(ctx context.Context, n int) error {
	c, err := b.client(&river.Config{})
	if err != nil {
		return err
	}
	return b.measure("bulk", n, func() error { return b.fill(ctx, c, n) })
}

func (b *bench) fill(ctx context.Context, c *river.Client[pgx.Tx], n int) error {
	for left := n; left > 0; left -= 1000 {
		list := make([]river.InsertManyParams, min(left, 1000))
		for i := range list {
			list[i].Args = noop{}
		}
		if _, err := c.InsertManyFast(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) tuned(ctx context.Context, n int) error { return b.drainTuned(ctx, "drain tuned", n) }

// deep is tuned with five times as many jobs.
func (b *bench) deep(ctx context.Context, n int) error {
	if err := b.refill(ctx, 5*n); err != nil {
		return err
	}
	return b.drainTuned(ctx, "drain tuned, 5 times as many", 5*n)
}

func (b *bench) drainTuned(ctx context.Context, name string, n int) error {
	return b.drain(ctx, name, n, &river.Config{FetchCooldown: time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}}})
}

func (b *bench) defaults(ctx context.Context, n int) error {
	if _, err := b.pool.Exec(ctx, "DELETE FROM river_job"); err != nil {
		return err
	}
	return b.drain(ctx, "drain default 10", min(n, 500), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}})
}

// drain works off all that waits, topped up to n.
func (b *bench) drain(ctx context.Context, name string, n int, config *river.Config) error {
	var waiting int
	if err := b.pool.QueryRow(ctx, "SELECT COUNT(*) FROM river_job WHERE state = 'available'").Scan(
		&waiting); err != nil {
		return err
	}
	workers := river.NewWorkers()
	w := &worker{done: new(atomic.Int64), want: int64(max(n, waiting)), all: make(chan struct{})}
	river.AddWorker(workers, w)
	config.Workers = workers
	c, err := b.client(config)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, c, n-waiting); err != nil {
		return err
	}
	return b.measure(name, max(n, waiting), func() error {
		if err := c.Start(ctx); err != nil {
			return err
		}
		<-w.all
		return c.Stop(ctx) // waits until the last completions are written
	})
}

// pickUp is from the call of Insert to the start of the work, tuned.
func (b *bench) pickUp(ctx context.Context, _ int) error {
	started := make(chan time.Time, 1)
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{done: new(atomic.Int64), want: -1, started: func(t time.Time) { started <- t }})
	c, err := b.client(&river.Config{Workers: workers, FetchCooldown: time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	var times []float64
	for range 100 {
		begun := time.Now()
		if _, err := c.Insert(ctx, noop{}, nil); err != nil {
			return err
		}
		times = append(times, float64((<-started).Sub(begun).Microseconds())/1000)
		time.Sleep(20 * time.Millisecond) // the worker is idle again
	}
	slices.Sort(times)
	if err := b.out.Encode(line{Name: "pick-up tuned", Jobs: len(times), Times: times}); err != nil {
		return err
	}
	return c.Stop(ctx)
}
