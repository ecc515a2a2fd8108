package schedule

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxMissed bounds how many missed ticks of one ring are recorded one by one.
const maxMissed = 20

// plan is what one ring does with an entry.
type plan struct {
	run    []time.Time
	missed []jobs.TickRecord
}

// due says which ticks of an entry are to be run and which are given up at
// now. It is pure: every instance comes to the same answer.
func (l line) due(since, now time.Time, zone *time.Location) plan {
	if !l.window.open(now.In(zone)) {
		return plan{}
	}
	until := now
	if l.After != "" {
		until = now.Add(-l.Wait)
	}
	var p plan
	oldest := until.Add(-l.MaxAge)
	if oldest.After(since) {
		if tick := l.spec.Last(since, oldest, zone); !tick.IsZero() {
			p.miss(l.Name, tick, "older than may be caught up, as what was missed before it")
		}
		since = oldest
	}
	ticks := l.spec.Between(since, until, zone)
	keep := len(ticks) - l.kept(ticks, until)
	for _, tick := range ticks[max(0, keep-maxMissed):keep] {
		note := "a later tick stands for it"
		if l.CatchUp == Skip {
			note = "no scheduler was there in time, and missed ticks are not caught up"
		}
		p.miss(l.Name, tick, note)
	}
	p.run = ticks[keep:]
	return p
}

// kept is how many of the newest ticks are run.
func (l line) kept(ticks []time.Time, now time.Time) int {
	switch {
	case len(ticks) == 0:
		return 0
	case l.CatchUp == All:
		return min(len(ticks), l.Limit)
	case l.CatchUp == Skip && now.Sub(ticks[len(ticks)-1]) > late:
		return 0
	}
	return 1
}

func (p *plan) miss(entry string, tick time.Time, note string) {
	p.missed = append(p.missed, jobs.TickRecord{Entry: entry, Tick: tick, Outcome: "missed", Note: note})
}
