package client

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
)

// Errors that callers may look for with errors.Is.
var (
	ErrNotFound = jobs.ErrNotFound // no job has the id
	ErrConflict = jobs.ErrConflict // the job's state forbids it
)

// Options say which tables are meant. The zero value is good for a CMS
// without a table prefix.
type Options struct {
	Prefix string // of the CMS's tables (DB_PREFIX)
	// Queue takes jobs that name none: "cmsjobs".
	Queue string
	// Slots is how many jobs of this program's kinds run at once after Start: 10.
	Slots  int
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
}

// Client is a way into one queue. It is safe for concurrent use.
type Client struct {
	store    *sqlstore.Store
	registry *jobs.Registry
	options  Options

	mu      sync.Mutex
	cancel  context.CancelFunc
	stopped chan error
}

// New opens the queue in db. driver is the database/sql driver's name: mysql,
// pgx or sqlite. For MySQL the DSN needs parseTime=true and clientFoundRows=true.
func New(ctx context.Context, db *sql.DB, driver string, o Options) (*Client, error) {
	if o.Queue == "" {
		o.Queue = "cmsjobs"
	}
	if o.Slots <= 0 {
		o.Slots = 10
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{registry: jobs.NewRegistry(), options: o}
	var err error
	c.store, err = sqlstore.Open(ctx, sqlx.NewDb(db, driver), sqlstore.Options{Prefix: o.Prefix, Registry: c.registry, DefaultQueue: o.Queue, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("opening the queue: %w", err)
	}
	return c, nil
}

// Job is a job to be enqueued. Only Kind is needed.
type Job struct {
	Kind    string // for example "sitemap.generate"
	Payload any    // what the handler needs; encoded as JSON
	Queue   string
	// ID names the job, a UUID; enqueuing the same ID twice makes one job.
	ID          string
	Metadata    any       // who asked; a JSON object
	Priority    int       // higher first; stock tables have none
	MaxAttempts int       // 0 leaves it to the kind
	RunAt       time.Time // zero is now
	// UniqueKey keeps a second job out while one with this key waits or runs.
	UniqueKey string
}

func (j Job) new() (jobs.New, error) {
	n := jobs.New{Kind: j.Kind, Queue: j.Queue, UUID: j.ID, Priority: j.Priority, MaxAttempts: j.MaxAttempts, RunAt: j.RunAt, UniqueKey: j.UniqueKey}
	if j.Payload != nil {
		data, err := json.Marshal(j.Payload)
		if err != nil {
			return n, fmt.Errorf("encoding the payload of %s: %w", j.Kind, err)
		}
		n.Data = data
	}
	if j.Metadata != nil {
		n = n.WithMetadata(j.Metadata)
	}
	return n, n.Check()
}

// Enqueue puts a job into its queue and returns its id (a UUID): that of the
// job that is there already, where ID or UniqueKey say so.
func (c *Client) Enqueue(ctx context.Context, j Job) (string, error) {
	n, err := j.new()
	if err != nil {
		return "", err
	}
	receipts, err := c.store.Enqueue(ctx, n)
	if err != nil {
		return "", err
	}
	return receipts[0].UUID, nil
}

// EnqueueAt is Enqueue of a job that is due at a moment.
func (c *Client) EnqueueAt(ctx context.Context, at time.Time, j Job) (string, error) {
	j.RunAt = at
	return c.Enqueue(ctx, j)
}

// Tx is a transaction of the caller: *sql.Tx and *sqlx.Tx are some.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// EnqueueTx puts jobs into their queues within the caller's transaction, which
// must be on the queue's database. It returns their ids in order.
func (c *Client) EnqueueTx(ctx context.Context, tx Tx, list ...Job) ([]string, error) {
	news := make([]jobs.New, 0, len(list))
	for _, j := range list {
		n, err := j.new()
		if err != nil {
			return nil, err
		}
		news = append(news, n)
	}
	receipts, err := c.store.EnqueueTx(ctx, tx, news...)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(receipts))
	for _, r := range receipts {
		ids = append(ids, r.UUID)
	}
	return ids, nil
}

// Info is what is known of a job.
type Info struct {
	ID, Kind, Queue string
	// Status is queued, processing, completed, failed or cancelled.
	Status                string
	Payload               json.RawMessage
	Attempts, MaxAttempts int
	LastError             string
	Result                json.RawMessage
	RunAt, CreatedAt      time.Time
	StartedAt, EndedAt    time.Time
}

func (c *Client) info(r jobs.Record) Info {
	envelope, _, _ := jobs.Parse(r.Payload, func(string) bool { return true }) // shown as well as it can be read
	return Info{ID: r.UUID, Kind: r.Kind, Queue: r.Queue, Status: string(r.State), Payload: envelope.Data, Attempts: r.Attempt, MaxAttempts: r.MaxAttempts,
		LastError: r.Error, Result: r.Result, RunAt: r.RunAt, CreatedAt: r.EnqueuedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt}
}

// Get finds a waiting, running, finished or failed job by id or row number.
func (c *Client) Get(ctx context.Context, id string) (Info, error) {
	r, err := c.store.Job(ctx, id)
	if err != nil {
		return Info{}, fmt.Errorf("job %s: %w", id, err)
	}
	return c.info(r), nil
}

// Filter chooses jobs; empty fields choose all. Status knows the words of all
// specifications (pending, running, succeeded …).
type Filter struct {
	Kind, Status  string
	Limit, Offset int // Limit 0 is 20
}

// List returns jobs, newest first, and how many there are in all (−1 where
// counting would be dear).
func (c *Client) List(ctx context.Context, f Filter) ([]Info, int64, error) {
	var filter jobs.Filter
	if f.Kind != "" {
		filter.Kinds = []string{f.Kind}
	}
	if f.Status != "" {
		state, known := jobs.ParseState(f.Status)
		if !known {
			return nil, 0, fmt.Errorf("no status is named %q", f.Status)
		}
		filter.States = []jobs.State{state}
	}
	if f.Limit <= 0 {
		f.Limit = 20
	}
	list, err := c.store.Jobs(ctx, filter, jobs.Page{Limit: f.Limit, Offset: f.Offset})
	if err != nil {
		return nil, 0, err
	}
	infos := make([]Info, 0, len(list.Items))
	for _, r := range list.Items {
		infos = append(infos, c.info(r))
	}
	return infos, list.Total, nil
}

// Stats are the queue's figures at one moment.
type Stats struct {
	Pending, Processing, Completed, Failed int64
	SuccessRate                            float64 // 0…1
	AverageDuration                        time.Duration
}

// Stats counts jobs.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	s, err := c.store.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	return Stats{s.Queued + s.Delayed, s.Processing, s.Completed, s.Failed, s.SuccessRate, s.AverageDuration}, nil
}

// Requeue puts a failed job back into its queue, or makes a delayed one due.
func (c *Client) Requeue(ctx context.Context, id string) error {
	r, err := c.store.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	switch only := (jobs.Filter{UUIDs: []string{r.UUID}}); r.State {
	case jobs.StateFailed:
		_, err = c.store.Revive(ctx, only, 1)
	case jobs.StateQueued:
		_, err = c.store.Hasten(ctx, only, 1)
	default:
		err = fmt.Errorf("job %s is %s: %w", id, r.State, ErrConflict)
	}
	return err
}

// Delete removes a waiting or failed job.
func (c *Client) Delete(ctx context.Context, id string) error {
	r, err := c.store.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	switch only := (jobs.Filter{UUIDs: []string{r.UUID}, States: []jobs.State{r.State}}); r.State {
	case jobs.StateFailed:
		_, err = c.store.Forget(ctx, only, 1)
	case jobs.StateQueued:
		_, err = c.store.Cancel(ctx, only, 1)
	default:
		err = fmt.Errorf("job %s is %s: %w", id, r.State, ErrConflict)
	}
	return err
}

var errRunning = errors.New("the worker runs already")
