package jobs

import (
	"slices"
	"testing"
	"time"
)

// A worker claims ahead what it claims within prefetchTime, while runs are short.
func TestHowManyJobsAreClaimedAhead(t *testing.T) {
	for _, c := range []struct {
		name      string
		mean      time.Duration
		perSecond float64
		want      int
	}{
		{"fast", 10 * time.Microsecond, 1_500, 450},
		{"as many as it may", 10 * time.Microsecond, 60_000, 512},
		{"slow database", 10 * time.Microsecond, 200, LeastAhead},
		{"longer runs", 10 * time.Millisecond, 20_000, 5},
		{"long runs", time.Second, 20_000, 0},
	} {
		w := aheadOf(c.mean, c.perSecond)
		if got := w.prefetchTarget(); got != c.want {
			t.Errorf("%s: %d ahead, want %d", c.name, got, c.want)
		}
	}
	w := aheadOf(10*time.Microsecond, 200)
	if w.c.LeastAhead = 256; w.prefetchTarget() != 256 {
		t.Errorf("a store that wants 256 ahead at least gets %d", w.prefetchTarget())
	}
}

// A worker that claims faster than its ends are written claims no more until they are.
func TestWhatEndedAndIsNotWrittenIsBounded(t *testing.T) {
	for _, c := range []struct {
		name      string
		perSecond float64
		ended     int
		claims    bool
	}{
		{"none", 1_500, 0, true},
		{"a few, whose settlement brings the next jobs", 1_500, manyEnds - 1, false},
		{"many", 1_500, manyEnds, true},
		{"twice as many as are claimed ahead", 1_500, 901, true},
		{"more", 1_500, 902, false},
		{"many, of a slow database", 200, 2*LeastAhead + 2, false},
	} {
		w := aheadOf(10*time.Microsecond, c.perSecond)
		w.c.Queues = []string{"default"}
		w.claiming.Store(true)
		w.paused.Store([]string(nil))
		for id := range int64(c.ended) {
			w.inFlight.take([]Claimed{{Lease: Lease{ID: id + 1}}}, time.Now())
			w.inFlight.leaveSlot(w.inFlight.next())
		}
		if got := w.capacityBesideEnds(); (got > 0) != c.claims {
			t.Errorf("%s: %d jobs would be claimed beside %d ends", c.name, got, c.ended)
		}
	}
}

func aheadOf(mean time.Duration, perSecond float64) *Worker {
	w := &Worker{c: Config{Now: time.Now, Prefetch: 512}, inFlight: newHoldings(1)}
	w.meanNanos.Store(int64(mean))
	w.pace.perSecond = perSecond
	w.unwritten.Store(false)
	return w
}

// A worker holds a bounded number of bytes of payload, however many jobs these are, and
// however they come and go.
func TestAWorkerHoldsSoManyBytesAhead(t *testing.T) {
	w := aheadOf(10*time.Microsecond, 1_500)
	payload := slices.Repeat([]byte{'x'}, 1<<20)
	claim := func(ids ...int64) (list []Claimed) {
		for _, id := range ids {
			list = append(list, Claimed{Lease: Lease{ID: id}, Payload: payload})
		}
		return list
	}
	asks := func(what string, ahead int, bytes int64) {
		t.Helper()
		waiting, running := w.inFlight.counts()
		if got, r := w.prefetchTarget(), w.request(nil, 100, 0); got != ahead || r.AheadBytes != bytes {
			t.Errorf("%s: %d ahead and %d bytes, want %d and %d (%d wait, %d run)", what, got, r.AheadBytes, ahead, bytes,
				waiting, running)
		}
	}
	asks("nothing held", 450, aheadBytes)
	w.inFlight.take(claim(1, 2, 3), time.Now())
	asks("three held", 450, aheadBytes-3<<20)
	first := w.inFlight.next()
	w.inFlight.take(claim(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), time.Now())
	asks("all held", 0, 0)
	if n := w.capacity(); n != 0 {
		t.Errorf("%d more may be claimed", n)
	}
	w.inFlight.leaveSlot(first)
	w.inFlight.take(claim(1), time.Now()) // it was released, and comes again before it is dropped
	w.inFlight.drop([]*inFlightJob{first})
	asks("the first came again", 0, 0)
	w.inFlight.drop(w.inFlight.list())
	asks("all ended", 450, aheadBytes)
}
