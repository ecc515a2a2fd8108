package jobs

import (
	"cmp"
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
	record   func(context.Context, jobs.Spec, jobs.Settlement)
}

// NewInline returns the executor of an installation without workers. It is best
// effort: one attempt, and no queue. What a job enqueues to follow it runs right after
// it, and its errors are the job's. record writes down what became of each job; the queue's
// store does, with [queue.Store.RecordAtOnce].
func NewInline(r *jobs.Registry, now func() time.Time,
	record func(context.Context, jobs.Spec, jobs.Settlement)) InlineExecutor {
	return inlineExecutor{r, now, record}
}

// atOnce is the worker of jobs that had none.
const atOnce = "at once"

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

// one runs a job and writes down what became of it.
func (i inlineExecutor) one(ctx context.Context, n jobs.Spec) (result json.RawMessage, next []jobs.Spec, err error) {
	entry, known := i.registry.Lookup(n.Type)
	if !known || entry.Run == nil {
		return nil, nil, fmt.Errorf("no handler is registered for %q", n.Type)
	}
	n.UUID, n.Queue = cmp.Or(n.UUID, uuid.NewString()), cmp.Or(n.Queue, entry.Queue)
	run, began := jobs.NewRun(i.now), i.now()
	job := jobs.Job{UUID: n.UUID, Type: entry.Type, Queue: n.Queue, Data: n.Data, Metadata: n.Metadata, Attempt: 1,
		MaxAttempts: 1, Priority: n.Priority, RunAt: began, EnqueuedAt: began}
	err = guarded(jobs.WithRun(ctx, run), entry, job)
	result, next = run.Result()
	_, lines := run.Snapshot()
	end := jobs.Settlement{Claimed: jobs.Claimed{Job: job}, Outcome: jobs.Completed, Result: result, Lines: lines,
		Worker: atOnce, Started: began, Duration: i.now().Sub(began)}
	if err != nil {
		end.Outcome, end.Error = jobs.Failed, err.Error()
	}
	i.record(context.WithoutCancel(ctx), n, end) // also where the caller left
	return result, next, err
}

// guarded runs a handler within its type's time; a panic is an error.
func guarded(ctx context.Context, entry jobs.Entry, job jobs.Job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler of %s panicked: %v", job.Type, r)
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, entry.Policy.Timeout, jobs.ErrTimeout)
	defer cancel()
	return entry.Run(ctx, job)
}
