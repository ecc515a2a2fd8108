package turns

import (
	"cmp"
	"container/list"
	"context"
	"sync"
)

// Slots are those of a process.
type Slots struct {
	mu      sync.Mutex
	free    int
	granted uint64 // how many turns there were
	asked   uint64 // how many lines began
	waiting map[*Worker]bool
}

// New returns that many slots, at least one.
func New(slots int) *Slots { return &Slots{free: max(slots, 1), waiting: map[*Worker]bool{}} }

// Worker is one of those who share the slots.
type Worker struct {
	slots   *Slots
	running int
	last    uint64    // its last turn, 0: it had none
	asked   uint64    // when its line began
	line    list.List // of chan struct{}: its jobs that wait, the first one first
}

// Worker returns a new one of those who share the slots.
func (s *Slots) Worker() *Worker { return &Worker{slots: s} }

// Turn waits for a slot; done frees it, and may be called once. Its error is that of ctx.
func (w *Worker) Turn(ctx context.Context) (done func(), err error) {
	s := w.slots
	s.mu.Lock()
	if s.free > 0 { // then nobody waits
		s.free--
		w.grant()
		s.mu.Unlock()
		return w.leave, nil
	}
	granted := make(chan struct{})
	if w.line.Len() == 0 {
		s.asked++
		w.asked = s.asked
	}
	at := w.line.PushBack(granted)
	s.waiting[w] = true
	s.mu.Unlock()
	select {
	case <-granted:
		return w.leave, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted: // at the same moment: the slot is another's
		w.release()
	default:
		w.line.Remove(at)
		w.leaveWhenEmpty()
	}
	return nil, context.Cause(ctx)
}

func (w *Worker) leave() {
	w.slots.mu.Lock()
	defer w.slots.mu.Unlock()
	w.release()
}

// release frees one of w's slots and gives it on; the caller holds the lock.
func (w *Worker) release() {
	s := w.slots
	w.running--
	next := s.next()
	if next == nil {
		s.free++
		return
	}
	next.grant()
	close(next.line.Remove(next.line.Front()).(chan struct{}))
	next.leaveWhenEmpty()
}

func (w *Worker) grant() {
	w.slots.granted++
	w.running, w.last = w.running+1, w.slots.granted
}

func (w *Worker) leaveWhenEmpty() {
	if w.line.Len() == 0 {
		delete(w.slots.waiting, w)
	}
}

// next is who gets a slot: with the fewest running jobs, of equals the one whose last
// turn is the longest ago, of those that had none the one that waits for the longest.
func (s *Slots) next() *Worker {
	order := func(a, b *Worker) int {
		return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.last, b.last), cmp.Compare(a.asked, b.asked))
	}
	var best *Worker
	for w := range s.waiting {
		if best == nil || order(w, best) < 0 {
			best = w
		}
	}
	return best
}
