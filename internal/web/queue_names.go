package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// queueNames bounds how many queues requests can make: each is a row of pages
// and figures, and a name that no worker knows is a job that never runs.
type queueNames struct {
	cfg Config

	mu    sync.Mutex
	known map[string]bool
	read  time.Time
}

const (
	maxQueues       = 200
	queueNamesEvery = time.Minute
)

func newQueueNames(cfg Config) *queueNames { return &queueNames{cfg: cfg} }

// allow refuses a queue's name that is new where there are maxQueues. "" is
// the type's own.
func (q *queueNames) allow(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.cfg.Now(); q.known == nil || now.Sub(q.read) >= queueNamesEvery {
		stats, err := q.cfg.Ledger.Stats(ctx)
		if err != nil {
			return err
		}
		q.known, q.read = map[string]bool{}, now
		for _, s := range stats.Queues {
			q.known[s.Queue] = true
		}
		for _, jobType := range q.cfg.Registry.Types() {
			if entry, known := q.cfg.Registry.Lookup(jobType); known {
				q.known[entry.Queue] = true
			}
		}
	}
	if !q.known[name] && len(q.known) >= maxQueues {
		return fieldError(http.StatusUnprocessableEntity, "queue", "There are %d queues already, and %s is none of them. Use one that exists.", maxQueues, clip(name, 60))
	}
	q.known[name] = true
	return nil
}
