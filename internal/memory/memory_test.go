package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// gcPercent is the collector's setting, read without changing it.
func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestTheCollectorIsSetBackByTheLast(t *testing.T) {
	var s Collector
	usual := gcPercent()
	if usual == pressedPercent {
		t.Fatalf("the usual is %d already", usual)
	}
	first, second := s.Press(), s.Press()
	first()
	first() // nobody else's turn
	if got := gcPercent(); got != pressedPercent {
		t.Errorf("%d while one still works", got)
	}
	second()
	if got := gcPercent(); got != usual {
		t.Errorf("%d after the last, was %d", got, usual)
	}
	defer s.Press()()
	if got := gcPercent(); got != pressedPercent {
		t.Errorf("%d the next time", got)
	}
}

func TestAWorkerLeavesMoreGarbageWhileLittleLives(t *testing.T) {
	usual := gcPercent()
	defer debug.SetGCPercent(int(usual))
	fixed := Collector{Fixed: true}
	if fixed.Adapt(); gcPercent() != usual {
		t.Errorf("%d percent, although GOGC is set", gcPercent())
	}
	var s Collector
	done := s.Press()
	if s.Adapt(); gcPercent() != pressedPercent {
		t.Errorf("%d percent beside large pieces", gcPercent())
	}
	if done(); gcPercent() != smallPercent {
		t.Errorf("%d percent after them", gcPercent())
	}
	debug.SetGCPercent(int(usual))
	if s.Adapt(); gcPercent() != smallPercent {
		t.Errorf("%d percent", gcPercent())
	}
	large := make([]byte, 2*smallHeap)
	runtime.GC()
	if s.Adapt(); gcPercent() != usualPercent {
		t.Errorf("%d percent while much lives", gcPercent())
	}
	runtime.KeepAlive(large)
}

// A command that a test runs in its own process once set the limit of a worker for all
// tests after it: the collector then took half of the processor.
func TestACollectorOfOthersIsLeftAlone(t *testing.T) {
	limit, usual := debug.SetMemoryLimit(-1), gcPercent()
	var s *Collector
	s.Limit(64 << 20)
	s.Adapt()
	done := s.Press()
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the limit is %d, was %d", got, limit)
	}
	if got := gcPercent(); got != usual {
		t.Errorf("%d percent, was %d", got, usual)
	}
	done()
}

func TestTheLimitLeavesSpaceForWhatGoDoesNotCount(t *testing.T) {
	usual := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(usual)
	new(Collector).Limit(1 << 40)
	if got := debug.SetMemoryLimit(-1); got != (1<<40)*9/10 {
		t.Errorf("the limit is %d", got)
	}
	new(Collector).Limit(0) // none: what it was
	if got := debug.SetMemoryLimit(-1); got != (1<<40)*9/10 {
		t.Errorf("after none it is %d", got)
	}
}
