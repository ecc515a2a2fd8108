package web

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// The interfaces below are what this package needs of the other rooms. The
// store implements those that speak of jobs, queues and workers; wire.go in
// cmd/cmsjobs adapts the handlers to the rest. A nil one answers 404 with a
// problem that names the part that is not configured.
//
// Common rules: an id that nobody has is an error that wraps jobs.ErrNotFound;
// an action that the state of things forbids wraps jobs.ErrConflict; times are
// UTC; lists are newest first unless said. Methods that change something take
// who did it from the caller only where the table keeps it.

// Ledger shows jobs wherever their rows lie: jobs, failed_jobs, the history.
type Ledger interface {
	// Job finds a waiting, running, finished or failed job by its UUID, or by
	// its row's number in the jobs table (then in failed_jobs, then history).
	Job(ctx context.Context, id string) (jobs.Record, error)
	// Jobs lists; no States in the filter means all of them.
	Jobs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.Record], error)
	// Count counts what Jobs would list.
	Count(ctx context.Context, f jobs.Filter) (int64, error)
	Stats(ctx context.Context) (jobs.Stats, error)
}

// JobMutator changes jobs. Each method works on at most limit jobs, those that
// were enqueued (or failed) first before others, and says how many it changed,
// so that a caller can go through any number in steps; limit 0 means 1000.
type JobMutator interface {
	// Cancel ends jobs that wait (they leave the table, a run "cancelled" is
	// recorded) and tells the workers of running ones to stop.
	Cancel(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// Retry puts failed jobs back into their queues, due now, attempts 0,
	// with the same UUID.
	Retry(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// Delete deletes failed jobs.
	Delete(ctx context.Context, f jobs.Filter, limit int) (int64, error)
	// RunNow makes waiting jobs due now.
	RunNow(ctx context.Context, f jobs.Filter, limit int) (int64, error)
}

// History shows runs and what handlers said in them.
type History interface {
	Runs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.RunRecord], error)
	// Log returns the log lines of a job's runs, oldest first, at most limit.
	Log(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error)
	// Groups are the failed jobs by cause, most first.
	Groups(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error)
	// Throughput counts ended runs in steps of equal length, oldest first.
	Throughput(ctx context.Context, since time.Time, step time.Duration) ([]jobs.Throughput, error)
}

// Queues pauses and continues queues for all workers.
type Queues interface {
	Pause(ctx context.Context, queue, by string) error
	// Continue says whether the queue was paused.
	Continue(ctx context.Context, queue string) (was bool, err error)
}

// Workers lists workers and tells them to stop.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
	// Stop makes one worker finish what it runs and exit; known is false when
	// there is none with this id.
	Stop(ctx context.Context, id string) (known bool, err error)
	// Restart makes all of them do so; their supervisor starts them anew.
	Restart(ctx context.Context) error
}

// Schedules shows and changes schedule entries.
type Schedules interface {
	Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error)
	// RunSchedule enqueues the entry's job now, apart from its ticks.
	RunSchedule(ctx context.Context, name string) (jobs.Receipt, error)
	// ChangeSchedule refuses a cron line that cannot be read.
	ChangeSchedule(ctx context.Context, name string, change jobs.ScheduleChange) error
	Ticks(ctx context.Context, name string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
}

// Ticker does one round of what the service does by itself: enqueues due
// ticks, runs due jobs until none is left or ctx ends (POST /api/cron/tick).
type Ticker interface {
	Tick(ctx context.Context) (ops.TickReport, error)
}

// ErrUnavailable marks the error of a place that cannot be asked: a bucket whose
// server is down, say. The answer is 503, with the error's text.
var ErrUnavailable = errors.New("not every place of the backups can be read")

// Setting is one value of the configuration and where it came from. Secrets
// arrive masked.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Secret bool   `json:"secret"`
}

// InlineExecutor runs one job at once, in this process, and returns its result. It is
// used where jobs are disabled.
type InlineExecutor interface {
	Do(ctx context.Context, n jobs.Spec) (json.RawMessage, error)
}
