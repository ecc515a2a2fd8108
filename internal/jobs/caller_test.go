package jobs

import (
	"errors"
	"testing"
)

// TestAnAbandonedHandlersEndIsNotTheNextRuns lets a handler that was left to itself return after
// all: the next run of the slot gets its own answer.
func TestAnAbandonedHandlersEndIsNotTheNextRuns(t *testing.T) {
	c := newCaller()
	defer func() { c.leave() }()
	stuck, late := make(chan struct{}), errors.New("of the stuck handler")
	old := c.returned
	c.calls <- func() error { <-stuck; return late }
	c.abandon()
	close(stuck)
	select {
	case err := <-old:
		if !errors.Is(err, late) {
			t.Errorf("the stuck handler returned %v", err)
		}
	case err := <-c.returned:
		t.Errorf("the next run would get %v", err)
	}
	c.calls <- func() error { return nil }
	if err := <-c.returned; err != nil {
		t.Errorf("the next run got %v", err)
	}
}
