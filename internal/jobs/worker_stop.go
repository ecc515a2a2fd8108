package jobs

import (
	"context"
	"sync"
	"time"
)

// A stop by signal has one deadline, counted from the signal, and each of its
// steps has its share of it: the grace period, in which running handlers go on
// and their ends are written as usual; returnTime, in which cancelled handlers
// return; and settleTime, in which their ends are written. Together the last
// two and the worker's farewell take less than a second. No step waits longer
// because the one before it, or the database, took long.
const (
	returnTime = 400 * time.Millisecond
	settleTime = 200 * time.Millisecond
	// lastMoment is for calls whose context has ended to return.
	lastMoment = 50 * time.Millisecond
	// claimGrace is how long a claim in flight is awaited. What a claim takes that
	// is given up waits for its lease.
	claimGrace = 5 * time.Second
)

// newStopPhases makes contexts that outlive ctx.
func newStopPhases(ctx context.Context) *stopPhases {
	p := &stopPhases{}
	p.runCtx, p.endLife = context.WithCancel(context.WithoutCancel(ctx))
	p.returning, p.endReturning = context.WithCancel(p.runCtx)
	p.grace, p.endGrace = context.WithCancel(p.returning)
	p.claims, p.endClaims = context.WithCancel(p.grace)
	p.starts, p.endStarts = context.WithCancel(p.grace)
	return p
}

// countDown ends the phases one after the other once ctx has ended, or at once
// when Abort is called. A stop that the worker itself decided on has no
// deadline until then.
func (w *Worker) countDown(ctx context.Context, p *stopPhases, finished <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-w.abort:
	case <-finished:
		return
	}
	first := min(claimGrace, w.c.Grace)
	for _, step := range []struct {
		after time.Duration
		skip  <-chan struct{}
		end   context.CancelFunc
	}{
		{first, w.abort, p.endClaims}, {w.c.Grace - first, w.abort, p.endGrace},
		{returnTime, nil, p.endReturning}, {settleTime, nil, p.endLife},
	} {
		timer := time.NewTimer(step.after)
		select {
		case <-timer.C:
		case <-step.skip:
		case <-finished:
		}
		timer.Stop()
		step.end()
	}
}

// claimUntilStopped claims until the worker is to stop. A claim in flight is
// awaited, or its rows would wait for their lease, but not for ever.
func (w *Worker) claimUntilStopped(ctx context.Context, stop *stopPhases) {
	await(stop.claims, func() { w.claimAll(ctx, stop.claims) })
	w.claiming.Store(false)
}

// drain releases what waits for a slot and waits for what runs: as long as
// it takes, but no longer than the grace once the stop has a deadline.
func (w *Worker) drain(stop *stopPhases, executors *sync.WaitGroup) {
	w.releaseUnstarted(w.c.Now().Add(time.Hour), ErrShutdown.Error())
	gone := make(chan struct{})
	go func() { executors.Wait(); close(gone) }()
	select {
	case <-gone:
		return
	case <-stop.grace.Done():
	}
	w.inFlight.cancelAll(ErrShutdown)
	<-gone // an executor leaves an unresponsive handler behind
}

// finishSettling waits until the last runs are written. Where the database is
// away it gives up after a while: the leases end by themselves.
func (w *Worker) finishSettling(settler *sync.WaitGroup, stop *stopPhases) {
	timer := time.AfterFunc(w.c.Grace, stop.endLife) // of a stop without a deadline
	defer timer.Stop()
	await(stop.runCtx, settler.Wait)
}

// leave signs the worker off.
func (w *Worker) leave(stop *stopPhases) {
	if w.c.Workers == nil {
		return
	}
	ctx, limit := stop.runCtx, 3*time.Second
	if ctx.Err() != nil {
		ctx, limit = context.WithoutCancel(ctx), lastMoment
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	left := make(chan error, 1)
	go func() { left <- w.c.Workers.Deregister(ctx, w.c.Info.ID) }()
	var err error
	select {
	case err = <-left:
	case <-ctx.Done(): // the driver may not see it
		err = ctx.Err()
	}
	if err != nil {
		w.c.Logger.Warn("worker not deregistered; its row will be removed as stale",
			"event", "worker.deregister_failed", "worker", w.c.Info.ID, "error", err)
	}
}

// await waits for fn, but not much longer than ctx lasts: fn, whose calls have
// the same end, may wait for a driver that does not see it, and then goes on by
// itself.
func await(ctx context.Context, fn func()) {
	done := make(chan struct{})
	go func() { fn(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(lastMoment)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
