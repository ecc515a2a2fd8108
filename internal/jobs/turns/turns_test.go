package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// waitFor waits until the worker has so many jobs in its line.
func waitFor(t *testing.T, w *Worker, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.slots.mu.Lock()
		have := w.line.Len()
		w.slots.mu.Unlock()
		if have == n {
			return
		}
	}
	t.Fatalf("never %d jobs in the line", n)
}

func take(t *testing.T, w *Worker) func() {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done, err := w.Turn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAFreedSlotGoesToWhoRunsTheFewest(t *testing.T) {
	s := New(2)
	flood, calm, late := s.Worker(), s.Worker(), s.Worker()
	first, second := take(t, flood), take(t, flood)
	order := make(chan string, 8)
	ask := func(name string, w *Worker) {
		go func() {
			if _, err := w.Turn(t.Context()); err == nil {
				order <- name
			}
		}()
	}
	for i := range 3 {
		ask("flood", flood)
		waitFor(t, flood, i+1)
	}
	ask("calm", calm)
	waitFor(t, calm, 1)
	ask("late", late)
	waitFor(t, late, 1)
	first()
	if got := <-order; got != "calm" {
		t.Errorf("the first free slot went to %s, want calm", got)
	}
	second()
	if got := <-order; got != "late" {
		t.Errorf("the second free slot went to %s, want late", got)
	}
	waitFor(t, flood, 3)
}

func TestWhoStopsWaitingLosesNoSlot(t *testing.T) {
	s := New(1)
	a, b := s.Worker(), s.Worker()
	done := take(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := b.Turn(ctx); ended <- err }()
	waitFor(t, b, 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the wait ended with %v", err)
	}
	done()
	take(t, b)()
	take(t, a)()
}

func TestNeverMoreRunsThanSlots(t *testing.T) {
	const slots = 3
	s := New(slots)
	var running, most atomic.Int64
	var all sync.WaitGroup
	for range 10 {
		w := s.Worker()
		for range 20 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+running.Load())*time.Millisecond)
				defer cancel()
				done, err := w.Turn(ctx)
				if err != nil {
					return
				}
				defer done()
				now := running.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				time.Sleep(100 * time.Microsecond)
				running.Add(-1)
			})
		}
	}
	all.Wait()
	if most.Load() > slots || most.Load() == 0 {
		t.Errorf("%d ran at once with %d slots", most.Load(), slots)
	}
	if s.free != slots || len(s.waiting) != 0 {
		t.Errorf("after all: %d slots are free, %d wait", s.free, len(s.waiting))
	}
}
