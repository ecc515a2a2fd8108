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

// inFlightJob is a claimed job in the worker's hands. Its fields after claimed are
// guarded by holdings.mu.
type inFlightJob struct {
	claimed Claimed
	taken   time.Time // when it was claimed
	started time.Time
	run     *Run
	end     Settlement // what is to be written; set by anyone who ends it, read by the settler

	stage      stage
	lease      Lease
	duplicates []Lease
	renewed    atomic.Pointer[time.Time] // when the lease was last known to be ours
	cancel     context.CancelCauseFunc
	lost       bool
}

// inFlightJobs are all claimed jobs of a worker, by row, and the line of those that
// wait for a slot.
type inFlightJobs struct {
	mu       sync.Mutex
	rows     map[int64]*inFlightJob
	pending  []*inFlightJob // waiting, the next one first
	nonEmpty *sync.Cond     // the line grew, or was closed
	closed   bool
	running  int
	payload  int64     // bytes that all rows have together
	slots    int       // how many may run
	open     int       // how many slots there are: more than slots while those too many run their last job
	last     time.Time // when a handler was last started
}

func newHoldings(slots int) *inFlightJobs {
	h := &inFlightJobs{rows: map[int64]*inFlightJob{}, slots: slots}
	h.nonEmpty = sync.NewCond(&h.mu)
	return h
}

// left is how long the run may go on unless its lease is renewed: until two
// thirds of the lease have passed.
func (x *inFlightJob) left(now time.Time, lease time.Duration) time.Duration {
	return lease*2/3 - now.Sub(*x.renewed.Load())
}

// overdue says that the lease was not renewed for so long that another worker
// may soon have the job.
func (x *inFlightJob) overdue(now time.Time, lease time.Duration) bool {
	return x.left(now, lease) <= 0
}

// take adds claimed jobs to the line.
func (h *inFlightJobs) take(claimed []Claimed, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range claimed {
		x := &inFlightJob{claimed: c, taken: now, lease: c.Lease, duplicates: c.Duplicates}
		x.renewed.Store(&now)
		if before := h.rows[c.Lease.ID]; before != nil { // released, and not dropped yet
			h.payload -= int64(len(before.claimed.Payload))
		}
		h.rows[c.Lease.ID] = x
		h.payload += int64(len(c.Payload))
		h.pending = append(h.pending, x)
	}
	h.nonEmpty.Broadcast()
}

// setSlots changes how many slots there are: start is called for each new one, and
// those too many end with their next call of next. A closed line has no new ones.
func (h *inFlightJobs) setSlots(n int, start func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	for h.slots = n; h.open < n; h.open++ {
		start()
	}
	h.nonEmpty.Broadcast()
	return true
}

// slotCount is how many may run at once.
func (h *inFlightJobs) slotCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots
}

// tooMany says that a slot that is about to run a job is to end instead.
func (h *inFlightJobs) tooMany() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open > h.slots
}

// next waits for the first of the line; nil ends the slot that asks: the line was
// closed, or there are fewer slots now.
func (h *inFlightJobs) next() *inFlightJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.pending) == 0 && !h.closed && h.open <= h.slots {
		h.nonEmpty.Wait()
	}
	if h.closed || h.open > h.slots { // what still waits is released
		h.open--
		return nil
	}
	x := h.pending[0]
	h.pending = h.pending[1:]
	x.stage = running
	h.running++
	return x
}

// dequeue takes those out of the line that were claimed before then.
func (h *inFlightJobs) dequeue(then time.Time) []*inFlightJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	var gone, rest []*inFlightJob
	for _, x := range h.pending {
		if x.taken.Before(then) {
			x.stage = settling
			gone = append(gone, x)
		} else {
			rest = append(rest, x)
		}
	}
	h.pending = rest
	return gone
}

// close lets nobody into the line any more and wakes the slots.
func (h *inFlightJobs) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.nonEmpty.Broadcast()
}

// begin notes that a handler starts; false when its lease is lost already.
func (h *inFlightJobs) begin(x *inFlightJob, run *Run, cancel context.CancelCauseFunc, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.lost {
		return false
	}
	x.run, x.cancel, x.started, h.last = run, cancel, now, now
	return true
}

// held counts those of xs whose slots are taken until their ends are written.
func (h *inFlightJobs) held(xs []*inFlightJob) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range xs {
		if x.stage == running {
			n++
		}
	}
	return n
}

// leaveSlot notes that a slot is free of x again.
func (h *inFlightJobs) leaveSlot(x *inFlightJob) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.stage == running {
		h.running--
	}
	x.stage = settling
}

// drop forgets a settled holding.
func (h *inFlightJobs) drop(xs []*inFlightJob) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range xs {
		if h.rows[x.claimed.Lease.ID] == x {
			delete(h.rows, x.claimed.Lease.ID)
			h.payload -= int64(len(x.claimed.Payload))
		}
	}
}

// counts returns how many wait for a slot and how many run.
func (h *inFlightJobs) counts() (waiting, running int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pending), h.running
}

// bytes is how much payload all claimed jobs have together.
func (h *inFlightJobs) bytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.payload
}

// ending is how many have ended and are not written yet.
func (h *inFlightJobs) ending() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rows) - len(h.pending) - h.running
}

// lastStart returns how many run, and when the last of them was started.
func (h *inFlightJobs) lastStart() (running int, last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running, h.last
}

// list returns the holdings at this moment.
func (h *inFlightJobs) list() []*inFlightJob {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*inFlightJob, 0, len(h.rows))
	for _, x := range h.rows {
		all = append(all, x)
	}
	return all
}

// settlement returns what is to be written, under the lease as it is now.
func (h *inFlightJobs) settlement(x *inFlightJob) Settlement {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.end.Claimed.Lease, x.end.Claimed.Duplicates = x.lease, x.duplicates
	return x.end
}

// cancelAll cancels every running handler.
func (h *inFlightJobs) cancelAll(cause error) {
	for _, x := range h.list() {
		h.cancelOne(x, cause)
	}
}

func (h *inFlightJobs) cancelOne(x *inFlightJob, cause error) {
	h.mu.Lock()
	cancel := x.cancel
	h.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// lose notes that a lease is gone and cancels its run.
func (h *inFlightJobs) lose(x *inFlightJob) {
	h.mu.Lock()
	x.lost = true
	h.mu.Unlock()
	h.cancelOne(x, ErrLeaseLost)
}
