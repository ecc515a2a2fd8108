package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
)

// Type is a type that a program runs, and how. Zero fields mean the defaults that
// are named.
type Type struct {
	Name  string // area.verb, in small letters
	Title string // what it does, for people
	Queue string // the worker's own
	// MaxAttempts counts starts: 3. Timeout is of one run: 5 minutes. Backoff are the
	// waits after failed runs: 60 s, 120 s, … up to an hour.
	MaxAttempts int
	Timeout     time.Duration
	Backoff     []time.Duration
	// Limit is how many run at once in the whole fleet: any number.
	Limit int
	// Rates are how many begin in each length of time, in the whole fleet: "10/s", "500/h".
	Rates []string
}

// Job is the job that runs.
type Job struct {
	ID       string // its UUID, over all attempts
	Type     string
	Queue    string
	Metadata json.RawMessage // who asked, from where
	// Attempt is 1 for the first start; MaxAttempts is the last.
	Attempt, MaxAttempts int
	RunAt, EnqueuedAt    time.Time
}

// Handle lets this program run jobs of a type after Start, and announces it: the
// service takes such jobs over HTTP, on its pages and from its command line, with a
// form and a check of the payload that are made of P, a struct with JSON names. The
// tags unit, default, example, choices and required say what Go cannot.
//
// It panics when the type has a handler already, a name that no type can have, or a rate
// that cannot be read.
// An error makes the job run again later, up to its limit; Permanent errors fail it
// at once.
func Handle[P any](w *Worker, t Type, fn func(ctx context.Context, job Job, payload P) error) {
	t.Queue = cmp.Or(t.Queue, w.options.Queue)
	policy := jobs.Policy{MaxAttempts: t.MaxAttempts, Timeout: t.Timeout, Limit: t.Limit}
	var err error
	if policy.Rates, err = jobs.ParseRates(t.Rates); err != nil {
		panic(fmt.Sprintf("worker: the type %q: %v", t.Name, err))
	}
	if len(t.Backoff) > 0 {
		policy.Backoff = jobs.Steps(t.Backoff...)
	}
	jobs.Handle(w.registry, jobs.Kind[P]{Name: t.Name, Queue: t.Queue, Policy: policy},
		func(ctx context.Context, j jobs.Job, p P) error {
			return fn(ctx, Job{ID: j.UUID, Type: j.Type, Queue: j.Queue, Metadata: j.Metadata, Attempt: j.Attempt,
				MaxAttempts: j.MaxAttempts, RunAt: j.RunAt, EnqueuedAt: j.EnqueuedAt}, p)
		})
	entry, _ := w.registry.Lookup(t.Name)
	given, err := json.Marshal(entry.Schema.JSON(nil))
	if err == nil {
		w.types = append(w.types, announce.Type{Name: t.Name, Title: t.Title, Queue: t.Queue, Schema: given,
			Policy: entry.Policy})
		_, err = w.types[len(w.types)-1].Entry()
	}
	if err != nil {
		panic(fmt.Sprintf("worker: the type %q: %v", t.Name, err))
	}
}

// Progress says how far the running job is; people see it live. total is 0 when it
// is unknown.
func Progress(ctx context.Context, done, total int64, note string) {
	jobs.Report(ctx, done, total, note)
}

// Logf adds a line to the running job's log, which people read beside the job.
func Logf(ctx context.Context, format string, args ...any) { jobs.Logf(ctx, format, args...) }

// SetResult leaves what the job found out or made, as JSON. The last call counts.
func SetResult(ctx context.Context, result any) error { return jobs.SetResult(ctx, result) }

// RetryAfter puts the job back for d because of err; the attempt does not count.
func RetryAfter(err error, d time.Duration) error { return jobs.RetryAfter(err, d) }
