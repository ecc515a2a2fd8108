package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// inlineExecutor runs jobs at once in this process.
type inlineExecutor struct {
	registry *jobs.Registry
	now      func() time.Time
}

// NewInline returns a Doer for an installation without workers. It is best
// effort: one attempt, no queue, no history. What a job enqueues to follow it
// runs right after it, and its errors are the job's.
func NewInline(r *jobs.Registry, now func() time.Time) InlineExecutor { return inlineExecutor{r, now} }

// maxFollowUps ends jobs that follow each other without end.
const maxFollowUps = 100

// Do runs n and what follows it.
func (i inlineExecutor) Do(ctx context.Context, n jobs.Spec) (json.RawMessage, error) {
	var first json.RawMessage
	queue := []jobs.Spec{n}
	for ran := 0; len(queue) > 0; ran++ {
		if ran >= maxFollowUps {
			return first, fmt.Errorf("more than %d jobs follow each other", maxFollowUps)
		}
		result, next, err := i.one(ctx, queue[0])
		if ran == 0 {
			first = result
		}
		if err != nil {
			return first, err
		}
		queue = append(queue[1:], next...)
	}
	return first, nil
}

func (i inlineExecutor) one(ctx context.Context, n jobs.Spec) (result json.RawMessage, next []jobs.Spec, err error) {
	entry, known := i.registry.Lookup(n.Type)
	if !known {
		return nil, nil, fmt.Errorf("no handler is registered for %q", n.Type)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler of %s panicked: %v", n.Type, r)
		}
	}()
	run := jobs.NewRun(i.now)
	ctx, cancel := context.WithTimeoutCause(jobs.WithRun(ctx, run), entry.Policy.Timeout, jobs.ErrTimeout)
	defer cancel()
	now := i.now()
	job := jobs.Job{UUID: n.UUID, Type: entry.Type, Queue: n.Queue, Data: n.Data, Metadata: n.Metadata, Attempt: 1,
		MaxAttempts: 1, Priority: n.Priority, RunAt: now, EnqueuedAt: now}
	if job.UUID == "" {
		job.UUID = uuid.NewString()
	}
	err = entry.Run(ctx, job)
	result, next = run.Result()
	return result, next, err
}
