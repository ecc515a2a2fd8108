package overview

import (
	"slices"
	"testing"
	"time"
)

// TestABacklogIsSeenBeforeItsJobsEnd has jobs that wait for four hours: the history knows
// nothing of them.
func TestABacklogIsSeenBeforeItsJobsEnd(t *testing.T) {
	past := []float64{1, 1, 1, 1, 1, 9}
	for _, c := range []struct {
		oldest time.Duration
		now    int64
		want   []float64
	}{{4 * time.Hour, 8, []float64{1, 1, 3, 5, 7, 8}}, {0, 0, []float64{1, 1, 1, 1, 1, 0}},
		{10 * time.Minute, 2, []float64{1, 1, 1, 1, 1, 2}}} {
		if got := withBacklog(past, time.Hour, c.oldest, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%d jobs, the oldest for %s: %v, want %v", c.now, c.oldest, got, c.want)
		}
	}
	if past[5] != 9 {
		t.Error("the kept answer was changed")
	}
}
