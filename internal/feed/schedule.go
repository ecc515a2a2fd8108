package feed

import (
	"slices"
	"strings"
	"time"
)

// A schedule holds at most scheduledMost moments, none later than scheduledFar;
// what has no place is found by the worker's poll.
const (
	scheduledMost = 1000
	scheduledFar  = time.Hour
	// scheduledStep is the least time between two moments.
	scheduledStep = 10 * time.Millisecond
)

// schedule keeps when delayed rows become due, by queue.
type schedule struct{ moments []moment } // by time

type moment struct {
	at    time.Time
	queue string
}

// add keeps the moment that is so far from now.
func (s *schedule) add(now time.Time, far time.Duration, queue string) {
	if far > scheduledFar {
		return
	}
	at := now.Add(far).Truncate(scheduledStep).Add(scheduledStep)
	m := moment{at, queue}
	i, there := slices.BinarySearchFunc(s.moments, m, func(a, b moment) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.queue, b.queue)
	})
	if there {
		return
	}
	s.moments = slices.Insert(s.moments, i, m)
	if len(s.moments) > scheduledMost {
		s.moments = s.moments[:scheduledMost] // the latest goes
	}
}

// first is the next moment.
func (s *schedule) first() (at time.Time, ok bool) {
	if len(s.moments) == 0 {
		return time.Time{}, false
	}
	return s.moments[0].at, true
}

// due takes the queues out whose moments have come.
func (s *schedule) due(now time.Time) []string {
	var queues []string
	for len(s.moments) > 0 && !s.moments[0].at.After(now) {
		if q := s.moments[0].queue; !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
		s.moments = s.moments[1:]
	}
	return queues
}
