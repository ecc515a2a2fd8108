package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/servers"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/memory"
	"github.com/cmsjobs/cmsjobs/internal/processors"
)

var noop = jobs.Kind[struct{}]{Name: "bench.noop", Queue: "default"}

// worker is one process of the fleet: the service's store and worker without its
// other parts.
type worker struct {
	dsn             string
	queues          []string
	slots, prefetch int
}

// run opens the database, says that it is ready, begins to work when a line comes
// on its input, stops when that ends, and says how many microseconds of processor
// time it used for it.
func (w *worker) run(ctx context.Context) error {
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: w.dsn})
	if err != nil {
		return err
	}
	defer db.Close()
	registry := jobs.NewRegistry()
	jobs.Handle(registry, noop, func(context.Context, jobs.Job, struct{}) error { return nil })
	store, err := queue.Open(ctx, db, tables.Options{Registry: registry})
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	var share *processors.Share
	if !database.Of(db).OneWriter { // as the service's workers do
		share = &processors.Share{Fixed: os.Getenv("GOMAXPROCS") != ""}
	}
	work, err := jobs.NewWorker(jobs.Config{Source: store, Workers: store, Registry: registry, Now: time.Now,
		Processors: share,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Info:       jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:fleet", host, os.Getpid()), Host: host, PID: os.Getpid()},
		Setup: []func(context.Context) error{func(ctx context.Context) error { // as the service does
			database.Warm(ctx, db, 2)
			return nil
		}},
		Queues: w.queues, Slots: w.slots, Prefetch: w.prefetch, LeastAhead: store.LeastAhead(),
		PollMin: 20 * time.Millisecond, PollMax: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	new(memory.Collector).Adapt() // as the service's workers do
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return err
	}
	before := servers.OwnCPU()
	working, stop := context.WithCancel(ctx)
	go func() {
		_, _ = input.ReadString('\n') // its end is what counts
		stop()
	}()
	if err := work.Run(working); err != nil {
		return err
	}
	fmt.Println((servers.OwnCPU() - before).Microseconds())
	return nil
}
