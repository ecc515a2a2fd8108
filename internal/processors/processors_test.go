package processors

import (
	"runtime"
	"testing"
)

func TestAProcessUsesAllProcessorsWhileSomethingTakesLong(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	if all < 2 {
		t.Skip("one processor: there is nothing to choose")
	}
	var s Share
	defer s.Few(all)
	uses := func(want int, when string) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%s: %d processors, want %d", when, got, want)
		}
	}
	s.Long()()
	uses(all, "after a long job of a process that never asked for few")
	s.Few(1)
	uses(1, "while nothing takes long")
	first, second := s.Long(), s.Long()
	uses(all, "while two jobs take long")
	first()
	first() // nobody else's turn
	uses(all, "while one still takes long")
	s.Few(all + 7)
	uses(all, "with more slots than processors")
	s.Few(1)
	uses(all, "while one takes long, with one slot")
	second()
	uses(1, "after the last")
}

func TestWhatTheEnvironmentSaysHolds(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	var none *Share
	for _, s := range []*Share{{Fixed: true}, none} {
		s.Few(1)
		done := s.Long()
		if got := runtime.GOMAXPROCS(0); got != all {
			t.Errorf("%d processors of %d", got, all)
		}
		done()
		if got := runtime.GOMAXPROCS(0); got != all {
			t.Errorf("%d processors of %d after a long job", got, all)
		}
	}
}
