package feed

import "time"

const (
	// busyFor is how long after news the looks are frequent.
	busyFor = 30 * time.Second
	// trustedPace is the time between looks while a source is known to work.
	trustedPace = 5 * time.Second
	// troublePace is the longest time between looks that fail.
	troublePace = 5 * time.Second
	// gap is the time between two looks that hints cause, in a flood of them: so many
	// come without it.
	gap   = 5 * time.Millisecond
	burst = 10
	// behindClaim is how long after workers were woken a look comes: before, it would only
	// compete with their claim, and find the row unclaimed.
	behindClaim = 2 * time.Millisecond
)

// again are the waits of further looks after a hint that came before its row
// could be seen: SQLite's file changes before the commit is on the disk, and a
// binary log is sent before the engine's commit is complete. After anyway of them
// an insert that no look has found wakes everybody: its row is not above the floor.
var again = []time.Duration{time.Millisecond, 4 * time.Millisecond, 15 * time.Millisecond,
	60 * time.Millisecond, 240 * time.Millisecond, time.Second}

const anyway = 3

// pace says how long to wait until the next look.
type pace struct {
	busy, idle time.Duration
	night      func(time.Time) bool // nil: it is always day
	news       time.Time            // when something was last found
	wait       time.Duration        // the last wait
}

// found notes that a look found something.
func (p *pace) found(now time.Time) { p.news, p.wait = now, p.busy }

// next is the wait after a look that found nothing: the busy one for busyFor,
// then the double each time up to the idle one, which is twice as long at night.
func (p *pace) next(now time.Time) time.Duration {
	if now.Sub(p.news) < busyFor {
		p.wait = p.busy
		return p.wait
	}
	longest := p.idle
	if p.night != nil && p.night(now) {
		longest *= 2
	}
	p.wait = min(2*max(p.wait, p.busy), longest)
	return p.wait
}
