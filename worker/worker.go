package worker

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/encryption"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Options say which tables are meant. The zero value is good for a CMS
// without a table prefix.
type Options struct {
	Prefix string           // of the CMS's tables (DB_PREFIX)
	Queue  string           // where jobs are taken from: "cmsjobs"
	Slots  int              // how many jobs run at once: 10
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	// Setup runs before the first job is taken; Start returns its error. Refresh runs every
	// RefreshEvery (5 minutes) beside the jobs, for what grows old, such as a token of
	// another service; its error is logged.
	Setup, Refresh func(context.Context) error
	RefreshEvery   time.Duration
	// Keys read the fields that the site encrypts (tag encrypted:"true"): the CMS's APP_KEY,
	// or queue.encryption_key, and those before.
	Keys []string
}

// Worker runs jobs of the types that were registered. It is safe for concurrent use.
type Worker struct {
	store    *queue.Store
	registry *jobs.Registry
	options  Options

	types     []announce.Type
	announced *announce.Store

	mu      sync.Mutex
	cancel  context.CancelFunc
	stopped chan error
}

// New opens the queue in db. driver is the database/sql driver's name: mysql,
// pgx or sqlite. For MySQL the DSN needs parseTime=true and clientFoundRows=true.
func New(ctx context.Context, db *sql.DB, driver string, o Options) (*Worker, error) {
	if o.Queue == "" {
		o.Queue = "cmsjobs"
	}
	if o.Slots <= 0 {
		o.Slots = 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	own := sqlx.NewDb(db, driver)
	w := &Worker{registry: jobs.NewRegistry(), options: o, announced: &announce.Store{DB: own, Now: o.Now}}
	keys, err := encryption.Of(o.Keys...)
	if err != nil {
		return nil, fmt.Errorf("Options.Keys: %w", err)
	}
	w.registry.SetKeys(keys)
	w.store, err = queue.Open(ctx, own, tables.Options{Prefix: o.Prefix, Registry: w.registry,
		DefaultQueue: o.Queue, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("opening the queue: %w", err)
	}
	return w, nil
}

// Register lets this program run jobs of a type after Start, by the defaults of its
// policy; P is the type of their payload. Handle says more of the type.
func Register[P any](w *Worker, jobType string, fn func(ctx context.Context, payload P) error) {
	Handle(w, Type{Name: jobType}, func(ctx context.Context, _ Job, p P) error { return fn(ctx, p) })
}

// Permanent marks an error that repeating would not fix.
func Permanent(err error) error { return jobs.Permanent(err) }

// announceEvery is how often a worker says that its types are still run.
const announceEvery = time.Hour

// queues are those of the registered types.
func (w *Worker) queues() []string {
	list := []string{w.options.Queue}
	for _, t := range w.types {
		if !slices.Contains(list, t.Queue) {
			list = append(list, t.Queue)
		}
	}
	return list
}

var errRunning = errors.New("the worker runs already")

// Start runs jobs of the registered types in the background, until Stop is
// called or ctx ends. Jobs of other types stay for other workers.
func (w *Worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return errRunning
	}
	if w.options.Setup != nil {
		if err := w.options.Setup(ctx); err != nil {
			return fmt.Errorf("setting the worker up: %w", err)
		}
	}
	if err := w.announced.Announce(ctx, w.types...); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming the worker: %w", err)
	}
	c := jobs.Config{
		Source: w.store, Workers: w.store, Registry: w.registry, Logger: w.options.Logger, Now: w.options.Now,
		Info: jobs.WorkerInfo{
			ID:   fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8]),
			Host: host, PID: os.Getpid(), Version: "worker",
		},
		Queues: w.queues(), Slots: w.options.Slots, PollMax: time.Second, RefreshEvery: announceEvery,
		Refresh: []func(context.Context) error{func(ctx context.Context) error {
			return w.announced.Announce(ctx, w.types...)
		}},
	}
	if w.options.Refresh != nil {
		c.Refresh = append(c.Refresh, w.options.Refresh)
		c.RefreshEvery = cmp.Or(w.options.RefreshEvery, 5*time.Minute)
	}
	loop, err := jobs.NewWorker(c)
	if err != nil {
		return err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.stopped = make(chan error, 1)
	go func(done chan<- error) { done <- loop.Run(ctx) }(w.stopped)
	return nil
}

// Stop takes no more jobs, waits for the running ones, and releases what
// does not end in time. Stopping what does not run is harmless.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	select {
	case err := <-w.stopped:
		w.cancel = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
