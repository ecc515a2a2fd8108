package jobs

import (
	"context"
	"encoding/json"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

// Ports are what the pages of jobs need besides the server's own.
type Ports struct {
	Mutator ops.Mutator // needed
	// Workers are asked by explanations; nil knows none.
	Workers Workers
	// Refresh asks which types the workers of other programs announced; nil asks nobody.
	Refresh func(context.Context) error
	// Breakers lists dependencies that are down now; nil means none is known.
	Breakers func(context.Context) ([]explain.Breaker, error)
	// Inline, where it is set, runs enqueued jobs at once: jobs are disabled.
	Inline InlineExecutor
	// DefaultQueue is the queue of types that have none.
	DefaultQueue string
	// PHPQueues are the queues whose jobs of PHP are run here.
	PHPQueues []string
	// Silenced are classes of PHP's whose completed jobs are listed only where the
	// filter asks for them.
	Silenced []string
	// NoPriorities says that the jobs table has no column for a priority: a job that asks
	// for one is refused.
	NoPriorities bool
	// Queues lists the queues that a job, worker, type or setting has.
	Queues func(context.Context) ([]string, error)
	// Restorable says whether a waiting job can be enqueued again after it was cancelled;
	// nil says no.
	Restorable func(jobs.Record) bool
	// Saved keeps people's filters; nil keeps none.
	Saved SavedFilters
}

// SavedFilters keeps filters of lists, each its owner's own; package saved has its
// bounds and errors.
type SavedFilters interface {
	Of(ctx context.Context, owner, list string) ([]saved.Filter, error)
	Save(ctx context.Context, owner string, f saved.Filter) error
	Delete(ctx context.Context, owner, list, name string) (saved.Filter, error)
}

// Workers lists workers.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
}

// InlineExecutor runs one job at once, in this process, and returns its result. It is
// used where jobs are disabled.
type InlineExecutor interface {
	Do(ctx context.Context, n jobs.Spec) (json.RawMessage, error)
}

type handlers struct {
	Ports
	queues *ops.QueueLimit
}
