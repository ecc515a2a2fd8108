package jobs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// stage is where a claimed job stands inside the worker.
type stage int

const (
	waiting stage = iota // claimed, no slot yet
	running
	settling // ended, not yet written
)

// holding is a claimed job in the worker's hands. Its fields after claimed are
// guarded by holdings.mu.
type holding struct {
	claimed Claimed
	taken   time.Time // when it was claimed
	started time.Time
	run     *Run
	end     Settlement // what is to be written; set by whoever ends it, read by the settler

	stage   stage
	lease   Lease
	twins   []Lease
	renewed atomic.Pointer[time.Time] // when the lease was last known to be ours
	cancel  context.CancelCauseFunc
	lost    bool
}

// holdings are all claimed jobs of a worker, by row, and the line of those that
// wait for a slot.
type holdings struct {
	mu      sync.Mutex
	rows    map[int64]*holding
	line    []*holding // waiting, the next one first
	arrived *sync.Cond // the line grew, or was closed
	closed  bool
	running int
}

func newHoldings() *holdings {
	h := &holdings{rows: map[int64]*holding{}}
	h.arrived = sync.NewCond(&h.mu)
	return h
}

// left is how long the run may go on unless its lease is renewed: until two
// thirds of the lease have passed.
func (x *holding) left(now time.Time, lease time.Duration) time.Duration {
	return lease*2/3 - now.Sub(*x.renewed.Load())
}

// overdue says that the lease was not renewed for so long that another worker
// may soon have the job.
func (x *holding) overdue(now time.Time, lease time.Duration) bool {
	return x.left(now, lease) <= 0
}

// take adds claimed jobs to the line.
func (h *holdings) take(claimed []Claimed, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range claimed {
		x := &holding{claimed: c, taken: now, lease: c.Lease, twins: c.Twins}
		x.renewed.Store(&now)
		h.rows[c.Lease.ID] = x
		h.line = append(h.line, x)
	}
	h.arrived.Broadcast()
}

// next waits for the first of the line; nil when the line was closed.
func (h *holdings) next() *holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.line) == 0 && !h.closed {
		h.arrived.Wait()
	}
	if h.closed { // what still waits is given back
		return nil
	}
	x := h.line[0]
	h.line = h.line[1:]
	x.stage = running
	h.running++
	return x
}

// leaveLine takes those out of the line that were claimed before then.
func (h *holdings) leaveLine(then time.Time) []*holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	var gone, rest []*holding
	for _, x := range h.line {
		if x.taken.Before(then) {
			x.stage = settling
			gone = append(gone, x)
		} else {
			rest = append(rest, x)
		}
	}
	h.line = rest
	return gone
}

// close lets nobody into the line any more and wakes the slots.
func (h *holdings) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.arrived.Broadcast()
}

// begin notes that a handler starts; false when its lease is lost already.
func (h *holdings) begin(x *holding, run *Run, cancel context.CancelCauseFunc, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.lost {
		return false
	}
	x.run, x.cancel, x.started = run, cancel, now
	return true
}

// leaveSlot notes that a slot is free of x again.
func (h *holdings) leaveSlot(x *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.stage == running {
		h.running--
	}
	x.stage = settling
}

// drop forgets a settled holding.
func (h *holdings) drop(xs []*holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range xs {
		if h.rows[x.claimed.Lease.ID] == x {
			delete(h.rows, x.claimed.Lease.ID)
		}
	}
}

// counts returns how many wait for a slot and how many run.
func (h *holdings) counts() (waiting, running int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.line), h.running
}

// list returns the holdings at this moment.
func (h *holdings) list() []*holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*holding, 0, len(h.rows))
	for _, x := range h.rows {
		all = append(all, x)
	}
	return all
}

// settlement returns what is to be written, under the lease as it is now.
func (h *holdings) settlement(x *holding) Settlement {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.end.Claimed.Lease, x.end.Claimed.Twins = x.lease, x.twins
	return x.end
}

// cancelAll cancels every running handler.
func (h *holdings) cancelAll(cause error) {
	for _, x := range h.list() {
		h.cancelOne(x, cause)
	}
}

func (h *holdings) cancelOne(x *holding, cause error) {
	h.mu.Lock()
	cancel := x.cancel
	h.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// lose notes that a lease is gone and cancels its run.
func (h *holdings) lose(x *holding) {
	h.mu.Lock()
	x.lost = true
	h.mu.Unlock()
	h.cancelOne(x, ErrLeaseLost)
}
