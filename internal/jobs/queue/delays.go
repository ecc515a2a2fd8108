package queue

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// delays are what this process knows of jobs that it gave back to run later.
// Store.mu guards them.
type delays struct {
	rows  map[string]map[int64]time.Time // by queue: when a row is due, of Options.Clock
	wakes map[string]map[time.Time]bool  // by queue: wake-ups that are set
}

// A queue keeps at most maxWakes wake-ups, wakeStep apart at least; what has
// none is found by the next poll.
const (
	maxWakes = 1000
	wakeStep = 100 * time.Millisecond
)

// noteDelays keeps in mind when jobs that were given back are due again, and
// wakes a worker then.
func (s *Store) noteDelays(ends []pendingSettlement) {
	now := s.Options.Clock()
	for _, e := range ends {
		if e.gone() || e.Delay <= 0 {
			continue
		}
		queue, at := e.Claimed.Job.Queue, now.Add(time.Duration(tables.WholeSeconds(e.Delay))*time.Second)
		s.noteDelay(queue, e.Claimed.Lease.ID, at)
		s.wakeAt(queue, at)
	}
}

func (s *Store) noteDelay(queue string, id int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.delays.rows[queue]
	if rows == nil {
		rows = map[int64]time.Time{}
		s.delays.rows[queue] = rows
	}
	if len(rows) < maxPending {
		rows[id] = at
	}
}

// takeDelays hands out what was noted of a queue, once.
func (s *Store) takeDelays(queue string) map[int64]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.delays.rows[queue]
	delete(s.delays.rows, queue)
	return rows
}

// wakeAt tells the workers of a queue at that time that a job is due.
func (s *Store) wakeAt(queue string, at time.Time) {
	at = at.Truncate(wakeStep).Add(wakeStep)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.delays.wakes[queue]
	if set == nil {
		set = map[time.Time]bool{}
		s.delays.wakes[queue] = set
	}
	if set[at] || len(set) >= maxWakes {
		return
	}
	set[at] = true
	time.AfterFunc(at.Sub(s.Options.Clock()), func() {
		s.mu.Lock()
		delete(set, at)
		s.mu.Unlock()
		s.Options.Wake(queue)
	})
}
