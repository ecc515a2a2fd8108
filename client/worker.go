package client

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register lets this program run jobs of a kind after Start; P is the type of
// their payload. It panics when the kind has a handler already. An error makes
// the job run again later, up to its limit; Permanent errors fail it at once.
func Register[P any](c *Client, kind string, fn func(ctx context.Context, payload P) error) {
	jobs.Handle(c.registry, jobs.Kind[P]{Name: kind, Queue: c.options.Queue}, func(ctx context.Context, _ jobs.Job, p P) error { return fn(ctx, p) })
}

// Permanent marks an error that repeating would not mend.
func Permanent(err error) error { return jobs.Permanent(err) }

// Start runs jobs of the registered kinds in the background, until Stop is
// called or ctx ends. Jobs of other kinds stay for other workers.
func (c *Client) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		return errRunning
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming the worker: %w", err)
	}
	w, err := jobs.NewWorker(jobs.Config{
		Source: c.store, Roster: c.store, Registry: c.registry, Logger: c.options.Logger, Now: c.options.Now,
		Info:   jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8]), Host: host, PID: os.Getpid(), Version: "client"},
		Queues: []string{c.options.Queue}, Slots: c.options.Slots, PollMax: time.Second,
	})
	if err != nil {
		return err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.stopped = make(chan error, 1)
	go func(done chan<- error) { done <- w.Run(ctx) }(c.stopped)
	return nil
}

// Stop takes no more jobs, waits for the running ones, and gives back what
// does not end in time. Stopping what does not run is harmless.
func (c *Client) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	select {
	case err := <-c.stopped:
		c.cancel = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
