package jobs

import (
	"testing"
	"time"
)

// A worker's pace is what it claims while there is something to claim.
func TestThePaceOfAWorker(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	for _, n := range []int{1, 2, 4} {
		p.note(now, n)
	}
	if got := p.within(time.Second); got != 7 {
		t.Errorf("%d jobs a second at the start, want as many as were claimed: 7", got)
	}
	now = now.Add(paceStep)
	p.note(now, 3)
	if got := p.within(time.Second); got != 200 {
		t.Errorf("%d jobs a second after 10 in %s, want 200", got, paceStep)
	}
	now = now.Add(time.Hour) // with nothing to do
	p.rest(now)
	now = now.Add(paceStep)
	p.note(now, 5)
	if got := p.within(time.Second); got != 150 {
		t.Errorf("%d jobs a second after 5 more in %s, want 150: an idle hour does not count", got, paceStep)
	}
	now = now.Add(10 * time.Second) // the database was slow
	p.note(now, 1)
	if got := p.within(time.Second); got != 75 {
		t.Errorf("%d jobs a second after 10 s with one, want 75", got)
	}
}

// A process that comes back late reads nothing beside what it takes: it would run out.
func TestWhatASlowProcessReadsAheadItTakesAtOnce(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		limit     int
		soon      int
	}{{80, 64, 0}, {80, 1, 23}, {10_000, 64, 1936}, {5, 1, leastSoon - 1}} {
		w := &Worker{c: Config{Now: time.Now}, inFlight: newHoldings(1)}
		w.meanNanos.Store(int64(50 * time.Microsecond))
		w.pace.perSecond = c.perSecond
		if got := w.request(nil, c.limit, 0).Soon; got != c.soon {
			t.Errorf("at %.0f jobs a second, %d beside the %d that are taken; want %d", c.perSecond, got, c.limit, c.soon)
		}
	}
}
