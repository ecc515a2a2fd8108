package history

import (
	"math"
	"testing"
)

// rangeOf is the range in which a length lies.
func rangeOf(t *testing.T, length int64) int {
	t.Helper()
	for r := range lastRange + 1 {
		if first, width := rangeStart(r); length < first+width {
			return r
		}
	}
	t.Fatalf("%d ms is in no range", length)
	return 0
}

// TestOccupancyFollowsLongAttemptsThroughTheSteps has attempts of four steps: the sum of
// all steps is the time that was spent, within the width of a range.
func TestOccupancyFollowsLongAttemptsThroughTheSteps(t *testing.T) {
	const width = 60_000
	c := seriesCounts{steps: 6, waits: make([]spread, 6), lengths: make([]spread, 6)}
	c.lengths[4][rangeOf(t, 2*width)] = 3
	c.waits[4][rangeOf(t, 90_000)] = 10
	c.lengths[0][rangeOf(t, 5*width)] = 2 // began before the first step
	waiting, running := c.occupancy(width)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.13*want+0.001 {
			t.Errorf("%s is %.3f, not about %.3f", what, got, want)
		}
	}
	near("running in the step before the end", running[3], 3)
	near("running in the first step", running[0], 1) // two of them until its middle
	near("running after the end", running[5], 0)
	near("running in all steps", running[1]+running[2]+running[3]+running[4], 3*2)
	sum := 0.0
	for _, n := range waiting {
		sum += n
	}
	near("waiting in all steps", sum, 10*1.5)
	near("waiting where others began to run", waiting[4], 0)
	near("waiting before", waiting[1], 10)
}
