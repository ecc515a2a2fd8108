package ops

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Ledger is what actions read of jobs.
type Ledger interface {
	Count(ctx context.Context, f jobs.Filter) (int64, error)
	Stats(ctx context.Context) (jobs.Stats, error)
}

// Mutator changes jobs. Each method works on at most limit jobs, those that
// were enqueued (or failed) first before others, and says how many it changed,
// so that a caller can go through any number in steps; limit 0 means 1000.
type Mutator interface {
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

// Enqueuer puts jobs into their queues.
type Enqueuer interface {
	Enqueue(ctx context.Context, jobs ...jobs.Spec) ([]jobs.Receipt, error)
}

// Actions change jobs by the rules of their statuses. Who may do it is asked
// before.
type Actions struct {
	Change   Mutator
	Enqueue  Enqueuer       // needed by RunAgain only
	Registry *jobs.Registry // needed by RunAgain only
}

// Action is something that is done with jobs.
type Action string

// The actions.
const (
	Retry  Action = "retry"   // put failed jobs back into their queues
	Cancel Action = "cancel"  // end waiting jobs, ask running ones to stop
	Delete Action = "delete"  // delete failed jobs
	RunNow Action = "run_now" // make waiting jobs due now
)

// ParseAction reads an action.
func ParseAction(text string) (Action, bool) {
	a := Action(text)
	return a, a.Statuses() != nil
}

// Statuses are those of the jobs that the action fits; nil for no action.
func (a Action) Statuses() []jobs.Status {
	switch a {
	case Retry, Delete:
		return []jobs.Status{jobs.StatusFailed}
	case RunNow:
		return []jobs.Status{jobs.StatusQueued}
	case Cancel:
		return []jobs.Status{jobs.StatusQueued, jobs.StatusProcessing}
	}
	return nil
}

// Runs says that the action makes jobs run.
func (a Action) Runs() bool { return a == Retry || a == RunNow }

// One does an action with one job. A job in a status that the action does not
// fit is refused, and so is PHP's own waiting job.
func (a Actions) One(ctx context.Context, action Action, r jobs.Record) error {
	if err := Fits(action, r); err != nil {
		return err
	}
	n, err := a.do(action)(ctx, only(r), 1)
	if err != nil {
		return fmt.Errorf("%s of job %s: %w", action, IDOf(r), err)
	}
	if n == 0 && action != RunNow { // a job that is due already is not changed
		return conflict("The job changed at this moment. Look again.")
	}
	return nil
}

// Fits says why an action does not fit a job, nil if it does.
func Fits(action Action, r jobs.Record) error {
	waits, ended := r.Status == jobs.StatusQueued, r.Status != jobs.StatusQueued && r.Status != jobs.StatusProcessing
	switch {
	case action == Cancel && ended:
		return conflict("The job has ended (%s): there is nothing to cancel.", r.Status)
	case (action == Retry || action == Delete) && r.Status != jobs.StatusFailed:
		return conflict("The job has not failed: it is %s.", r.Status)
	case action == RunNow && !waits:
		return conflict("The job does not wait: it is %s.", r.Status)
	case r.Foreign && !ended:
		return conflict(
			"The job belongs to PHP: this service does not change it while it waits or runs. Use the CMS's " +
				"own commands (php artisan queue:…).")
	}
	return nil
}

// Remove takes a job away: a failed one is deleted, a waiting one cancelled.
func (a Actions) Remove(ctx context.Context, r jobs.Record) error {
	switch r.Status {
	case jobs.StatusFailed:
		return a.One(ctx, Delete, r)
	case jobs.StatusQueued:
		return a.One(ctx, Cancel, r)
	case jobs.StatusProcessing:
		return conflict("A running job cannot be deleted. Cancel it first.")
	}
	return conflict("The job has ended (%s); the history is kept until its time is over.", r.Status)
}

// PayloadKept refuses a job whose payload is not known any more.
func PayloadKept(r jobs.Record) error {
	if r.PayloadOmitted {
		return conflict("The history does not keep the payload of this job: it cannot run again.")
	}
	return nil
}

// RunAgain gives a job another run and returns the id under which it has it: a
// failed one is retried, a waiting one is due now, an ended one is enqueued again.
func (a Actions) RunAgain(ctx context.Context, r jobs.Record) (id string, err error) {
	switch r.Status {
	case jobs.StatusFailed:
		return IDOf(r), a.One(ctx, Retry, r)
	case jobs.StatusQueued:
		return IDOf(r), a.One(ctx, RunNow, r)
	case jobs.StatusProcessing:
		return "", conflict("The job is running. Wait for its end, or cancel it first.")
	}
	if err := PayloadKept(r); err != nil {
		return "", err
	}
	known := func(name string) bool { _, known := a.Registry.Known(name); return known }
	envelope, origin, err := jobs.Parse(r.Payload, known)
	if origin != jobs.Ours {
		return "", conflict("The job cannot run again: %v.", err)
	}
	entry, _ := a.Registry.Known(envelope.Type)
	receipts, err := a.Enqueue.Enqueue(ctx, jobs.Spec{Type: entry.Type, Queue: r.Queue, Data: envelope.Data,
		Metadata: envelope.Metadata, Priority: r.Priority})
	if err != nil {
		return "", fmt.Errorf("enqueuing the job again: %w", err)
	}
	return receipts[0].UUID, nil
}

// only is the filter that chooses one job.
func only(r jobs.Record) jobs.Filter {
	return jobs.Filter{UUIDs: []string{r.UUID}, Statuses: []jobs.Status{r.Status}}
}

func (a Actions) do(action Action) func(context.Context, jobs.Filter, int) (int64, error) {
	switch action {
	case Retry:
		return a.Change.Retry
	case Cancel:
		return a.Change.Cancel
	case Delete:
		return a.Change.Delete
	case RunNow:
		return a.Change.RunNow
	}
	return func(context.Context, jobs.Filter, int) (int64, error) {
		return 0, jobs.Permanent(fmt.Errorf("no action is named %q", action))
	}
}
