package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxBatch is how many jobs one claim takes at most; callTimeout bounds one
// call to the source.
const (
	maxBatch    = 2000
	callTimeout = 20 * time.Second
)

// claimAll claims while there is free capacity, until ctx ends, a limit is reached or a
// stop is requested. Calls to the source outlive ctx: a claim that was begun
// is awaited, or its rows would wait for their lease.
func (w *Worker) claimAll(ctx, runCtx context.Context) {
	w.claiming.Store(true)
	defer w.claiming.Store(false)
	var deadline <-chan time.Time
	if w.c.MaxTime > 0 {
		t := time.NewTimer(w.c.MaxTime)
		defer t.Stop()
		deadline = t.C
	}
	idle := w.c.PollMin
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stopRequested:
			return
		case <-deadline:
			w.requestStop("its time is over", nil)
			return
		default:
		}
		took, capacity, whole, unseen := w.claimOnce(runCtx)
		if unseen {
			continue
		}
		if w.finished(took, capacity, whole) {
			return
		}
		idle = w.waitNext(ctx, deadline, took, capacity, idle)
	}
}

// claimOnce claims what there is space for. unseen says that there were too many
// rows to look at: more may be due. whole says that all rows were looked at.
func (w *Worker) claimOnce(runCtx context.Context) (took, capacity int, whole, unseen bool) {
	w.claims.Lock()
	defer w.claims.Unlock()
	capacity = w.capacityBesideEnds()
	whole = w.endsWhenEmpty() && len(w.inFlight.list()) == 0
	if queues := w.openQueues(); capacity > 0 && len(queues) > 0 {
		took, unseen = w.claim(runCtx, queues, capacity, whole)
	}
	return took, capacity, whole, unseen
}

// capacityBesideEnds is how many jobs may be claimed while ends are not written yet. What
// a few leave space for comes with their settlement. Where twice as many wait as are
// claimed ahead, they are written first: else a process that claims faster than it settles
// would hold ever more, and jobs that ended would run again if it died.
func (w *Worker) capacityBesideEnds() int {
	ending, most := w.inFlight.ending(), w.slots()+max(2*w.prefetchTarget(), manyEnds)
	if ending > 0 && ending < manyEnds && w.claimsOnSettle() || ending > most {
		return 0
	}
	return w.capacity()
}

// waitNext waits until the next claim is worthwhile, at most idle where there was
// nothing to claim. It returns how long the wait after that may last.
func (w *Worker) waitNext(ctx context.Context, deadline <-chan time.Time, took, capacity int,
	idle time.Duration) time.Duration {
	switch {
	case took > 0:
		if took < capacity || w.capacity() == 0 { // else batches come back full: ask again at once
			w.wait(ctx, deadline, w.c.PollMin, took == capacity)
		}
		return w.c.PollMin
	case capacity == 0:
		w.wait(ctx, deadline, w.c.PollMax, true)
		return idle
	case w.wait(ctx, deadline, w.spread(idle), false):
		return w.c.PollMin
	}
	return min(2*idle, w.c.PollMax)
}

// claim takes up to capacity jobs and hands them to the slots.
func (w *Worker) claim(runCtx context.Context, queues []string, capacity int, whole bool) (took int, unseen bool) {
	call, cancel := context.WithTimeout(runCtx, callTimeout)
	defer cancel()
	asked := w.c.Now()
	slots, r := w.slots(), w.request(queues, capacity, 0)
	r.Whole = whole
	claimed, err := w.c.Source.Claim(call, r)
	if err != nil && !errors.Is(err, ErrUnseen) {
		w.trouble.note(doingClaims, err)
		return 0, false
	}
	w.trouble.clear(doingClaims)
	if len(claimed) == 0 {
		w.pace.rest(w.c.Now())
	}
	// The lease counts from before the question: the answer may have been long
	// on its way.
	w.arrived(claimed, asked, slots)
	return len(claimed), err != nil
}

// request asks for so many jobs. held of the running ones leave their slots with the
// same call.
func (w *Worker) request(queues []string, limit, held int) ClaimRequest {
	waiting, running := w.inFlight.counts()
	return ClaimRequest{Worker: w.c.Info.ID, Queues: queues, Limit: limit,
		Ahead:      limit - min(limit, max(w.slots()-waiting-running+held, 0)),
		AheadBytes: aheadBytes - w.inFlight.bytes(), Soon: max(w.soon()-limit, 0), Lease: w.c.Lease}
}

// soonTime is for which time's jobs rows are read. A rest beside what a claim takes is
// worth reading only within it: where the hands are full for longer, it would run out.
const soonTime = 300 * time.Millisecond

// leastSoon is how many are read at least, where runs are short: fewer would make a slow
// pace slower.
const leastSoon = 8

// soon is how many jobs this worker claims within soonTime at its present pace, and at
// the present length of a run; none while runs are long.
func (w *Worker) soon() int {
	mean := w.meanNanos.Load()
	if mean == 0 || w.slotsAreLong() {
		return 0
	}
	return int(min(int64(w.slots())*int64(soonTime)/mean, max(w.pace.within(soonTime), leastSoon), maxBatch))
}

// paceStep is how long a worker's claims are counted for one figure of its pace.
const paceStep = 50 * time.Millisecond

// pace is how fast a worker claims while there is something to claim. With many
// processes on one machine, or a slow database, that is far less than its runs would
// allow: rows that it reads and does not claim in time are read again by others.
type pace struct {
	mu        sync.Mutex
	since     time.Time // of what claimed counts
	claimed   int
	perSecond float64 // moving average, 0: not known yet
}

// note counts what a claim brought.
func (p *pace) note(now time.Time, claimed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	p.claimed += claimed
	past := now.Sub(p.since)
	if past < paceStep {
		return
	}
	rate := float64(p.claimed) / past.Seconds()
	if p.perSecond > 0 {
		rate = (p.perSecond + rate) / 2
	}
	p.since, p.claimed, p.perSecond = now, 0, rate
}

// rest leaves out the time in which there was nothing to claim.
func (p *pace) rest(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.claimed = now, 0
}

// within is how many jobs are claimed in so long a time; as many as were, where that
// is not known yet.
func (p *pace) within(d time.Duration) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.perSecond == 0 {
		return int64(p.claimed)
	}
	return int64(p.perSecond * d.Seconds())
}

// capacity is how many jobs may be claimed now. It waits until a good part of the
// prefetch is used up, so that claims come in batches.
func (w *Worker) capacity() int { return w.capacityAfter(0) }

// capacityAfter is capacity when held of the running jobs have left their slots.
func (w *Worker) capacityAfter(held int) int {
	if w.unwritten.Load() { // what would run could not end
		return 0
	}
	waiting, running := w.inFlight.counts()
	ahead := w.prefetchTarget()
	capacity := w.slots() + ahead - waiting - running + held
	if w.c.MaxJobs > 0 {
		capacity = min(capacity, w.c.MaxJobs-int(w.started.Load()))
	}
	if w.c.Once {
		capacity = min(capacity, 1-int(w.started.Load()))
	}
	if waiting > ahead/2 {
		return 0
	}
	return min(max(capacity, 0), maxBatch)
}

// prefetchTime is how long the jobs that are claimed ahead may take by the present
// length of a run, and after which they are released when no slot came free: long
// jobs are not kept from idle workers.
const prefetchTime = 50 * time.Millisecond

// LeastAhead is how many are claimed ahead at least, where runs are short and
// Config.LeastAhead says nothing: with fewer, a slow pace would become slower.
const LeastAhead = 128

// aheadBytes is how many bytes of payload a worker holds at most to claim ahead.
const aheadBytes = 16 << 20

// prefetchTarget is how many jobs to hold beyond the slots: what these do within
// prefetchTime by the length of a run, and what the worker claims within soonTime. With
// many processes on one machine the latter is far less, and what one of them holds the
// others could run.
func (w *Worker) prefetchTarget() int {
	mean := w.meanNanos.Load()
	if w.c.Prefetch == 0 || mean == 0 || w.slotsAreLong() || w.inFlight.bytes() >= aheadBytes {
		return 0
	}
	return int(min(int64(w.c.Prefetch), int64(w.slots())*int64(prefetchTime)/mean,
		max(w.pace.within(soonTime), int64(cmp.Or(w.c.LeastAhead, LeastAhead)))))
}

// slotsAreLong says that all slots run jobs, none of which began lately.
func (w *Worker) slotsAreLong() bool {
	running, last := w.inFlight.lastStart()
	return running >= w.slots() && w.c.Now().Sub(last) >= prefetchTime
}

// giveBack releases what was claimed ahead and finds no slot.
func (w *Worker) giveBack() {
	if w.c.Prefetch > 0 && w.slotsAreLong() {
		w.releaseUnstarted(w.c.Now().Add(time.Hour), "claimed ahead, no slot came free in time")
	}
}

// openQueues are the worker's queues without the paused ones, in order.
func (w *Worker) openQueues() []string {
	paused := w.paused.Load().([]string)
	if len(paused) == 0 {
		return w.c.Queues
	}
	return slices.DeleteFunc(slices.Clone(w.c.Queues), func(q string) bool { return slices.Contains(paused, q) })
}

// endsWhenEmpty says that the worker ends when it finds nothing.
func (w *Worker) endsWhenEmpty() bool { return w.c.Once || w.c.StopWhenEmpty }

// finished says whether a limit ends the worker. Only after a whole look it may
// say that there is nothing.
func (w *Worker) finished(took, capacity int, whole bool) bool {
	waiting, _ := w.inFlight.counts()
	started := int(w.started.Load())
	found := took > 0 || capacity == 0 || !w.trouble.quiet() // or could have
	switch {
	case waiting > 0 && (w.c.Once || w.c.MaxJobs > 0): // else what was claimed to be run would be released
		return false
	case w.c.Once && (started > 0 || !found):
		w.requestStop("it was to run once", nil)
	case w.c.MaxJobs > 0 && started >= w.c.MaxJobs:
		w.requestStop(fmt.Sprintf("it started %d jobs", started), nil)
	case w.c.StopWhenEmpty && whole && !found && w.isIdle():
		w.requestStop("the queues are empty", nil)
	default:
		return false
	}
	return true
}

// wait returns after d, or earlier when something happened that makes another
// look worthwhile; true means that it did. onlyRoom ignores wake-ups: without
// a free slot they change nothing.
func (w *Worker) wait(ctx context.Context, deadline <-chan time.Time, d time.Duration, ignoreWakeUps bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	wake := w.c.Wake
	if ignoreWakeUps {
		wake = nil
	}
	select {
	case <-ctx.Done():
	case <-w.stopRequested:
	case <-deadline:
		w.requestStop("its time is over", nil)
	case <-w.slotFreed:
		return true
	case <-wake:
		return true
	case <-timer.C:
	}
	return false
}

// spread puts up to a fifth on a wait, so that many workers do not ask at once.
func (w *Worker) spread(d time.Duration) time.Duration {
	return d + time.Duration(float64(d)*0.2*w.c.Random())
}

// isIdle says that the worker holds no job, and released none unstarted lately.
func (w *Worker) isIdle() bool {
	waiting, running := w.inFlight.counts()
	return waiting+running+len(w.inFlight.list()) == 0 && !w.releasedLately()
}

// releasedFor is how long a job that was released unstarted may not be due: a table that
// counts whole seconds has it due again in the next one.
const releasedFor = 1500 * time.Millisecond

// releasedLately says that a look may miss what this worker itself released.
func (w *Worker) releasedLately() bool {
	at := w.releasedAt.Load()
	return at != nil && w.c.Now().Sub(*at) < releasedFor
}

// releaseUnstarted releases what was claimed before then and found no slot.
func (w *Worker) releaseUnstarted(then time.Time, why string) {
	for _, x := range w.inFlight.dequeue(then) {
		now := w.c.Now()
		w.releasedAt.Store(&now)
		w.started.Add(-1)
		w.finishWithoutRun(x, Settlement{Outcome: Released, Unstarted: true, Error: why})
	}
}
