package jobs

import (
	"net/http"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// queueNames bounds how many queues requests can make: each is a row of pages
// and figures, and a name that no worker knows is a job that never runs.
type queueNames struct {
	mu    sync.Mutex
	known map[string]bool
	read  time.Time
}

const (
	maxQueues       = 200
	queueNamesEvery = time.Minute
)

// allow refuses a queue's name that is new where there are maxQueues. "" is
// the type's own.
func (q *queueNames) allow(req *web.Request, name string) error {
	if name == "" {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := req.Now(); q.known == nil || now.Sub(q.read) >= queueNamesEvery {
		stats, err := req.Ledger().Stats(req.Ctx())
		if err != nil {
			return err
		}
		q.known, q.read = map[string]bool{}, now
		for _, s := range stats.Queues {
			q.known[s.Queue] = true
		}
		for _, jobType := range req.Registry().Types() {
			if entry, known := req.Registry().Lookup(jobType); known {
				q.known[entry.Queue] = true
			}
		}
	}
	if !q.known[name] && len(q.known) >= maxQueues {
		return web.RefuseField(http.StatusUnprocessableEntity, "queue", "There are %d queues already, and %s is none "+
			"of them. Use one that exists.", maxQueues, redact.Clip(name, 60))
	}
	q.known[name] = true
	return nil
}
