package publish

import "time"

// The times between two renewals: the first edit after a quiet time is shown at once,
// and the more follow, the longer they gather.
const (
	paceFirst = time.Second
	paceMost  = 20 * time.Second
)

// pace spreads renewals over a burst of edits.
type pace struct {
	last time.Time // renewal
	gap  time.Duration
}

// renewed notes a renewal, and says from when on the next may be.
func (p *pace) renewed(now time.Time) time.Time {
	if now.Sub(p.last) >= p.gap+paceMost {
		p.gap = paceFirst
	} else {
		p.gap = min(2*p.gap, paceMost)
	}
	p.last = now
	return now.Add(p.gap)
}
