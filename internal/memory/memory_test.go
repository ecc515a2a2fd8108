package memory

import (
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
