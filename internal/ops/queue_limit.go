package ops

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// QueueLimit bounds the queues that requests and commands make: each is a row of pages
// and figures, and a name that no worker knows is a job that never runs. What other
// programs write into the jobs table is bounded where it is read (jobs.MaxQueues). It
// is safe for concurrent use.
type QueueLimit struct {
	// Known lists the queues that a job, worker, type or setting has.
	Known func(context.Context) ([]string, error)

	mu    sync.Mutex
	names []string
	read  time.Time
}

// queueNamesEvery is how long the names that Known said are remembered.
const queueNamesEvery = time.Minute

// Allow refuses a name that no queue may have, and one that is new where there are
// jobs.MaxQueues. "" is the type's own.
func (q *QueueLimit) Allow(ctx context.Context, now time.Time, name string) error {
	if name == "" {
		return nil
	}
	if err := checkQueue("queue", name); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.names == nil || now.Sub(q.read) >= queueNamesEvery {
		names, err := q.Known(ctx)
		if err != nil {
			return fmt.Errorf("listing queues: %w", err)
		}
		q.names, q.read = names, now
	}
	if slices.Contains(q.names, name) {
		return nil
	}
	if err := notTooMany("queue", q.names, name); err != nil {
		return err
	}
	q.names = append(q.names, name)
	return nil
}

func checkQueue(field, name string) error {
	if jobs.CheckQueue(name) == nil {
		return nil
	}
	return invalid(field, "The name of a queue has 1 to %d letters, digits and signs of . : / _ -, and %q is none.",
		jobs.MaxQueueName, redact.Clip(name, 60))
}

// notTooMany refuses one name more where there are jobs.MaxQueues.
func notTooMany(field string, known []string, name string) error {
	if len(known) < jobs.MaxQueues {
		return nil
	}
	return invalid(field, "There are %d queues already, and %s is none of them. Use one that exists.", jobs.MaxQueues,
		redact.Clip(name, 60))
}
