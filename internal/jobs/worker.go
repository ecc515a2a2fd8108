package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// NewWorker checks the configuration and returns a worker that Run starts.
func NewWorker(c Config) (*Worker, error) {
	if c.Source == nil || c.Registry == nil || c.Now == nil {
		return nil, errors.New("a worker needs a source, a registry and a clock")
	}
	if c.Lease > 0 && c.Lease < 3*time.Second {
		return nil, fmt.Errorf("a lease of %v is too short: tables count whole seconds, take 3 s or more", c.Lease)
	}
	c.defaults()
	w := &Worker{c: c, inFlight: newHoldings(c.Slots),
		slotFreed: make(chan struct{}, 1), abort: make(chan struct{}), stopRequested: make(chan struct{})}
	w.ended = make(chan *inFlightJob, w.mostSlots()+c.Prefetch)
	w.trouble = trouble{log: c.Logger, now: c.Now}
	w.status.Store("running")
	w.paused.Store([]string(nil))
	return w, nil
}

// Abort ends the grace period of a stopping worker at once (the second signal).
func (w *Worker) Abort() { w.aborted.Do(func() { close(w.abort) }) }

// claimsNothingMore is logged as soon as a worker has begun to stop.
const claimsNothingMore = "worker claims no more jobs"

// Run works until ctx ends, then stops gracefully: it claims nothing more,
// lets running jobs go on for the grace period, releases what still runs
// (uncounted) and returns, a second after the grace period at the latest,
// whatever the database does. It returns nil for every orderly end, ErrMemory
// or ErrStuck where the process should be replaced.
func (w *Worker) Run(ctx context.Context) error {
	stop := newStopPhases(ctx)
	runCtx := stop.runCtx
	defer stop.endLife()
	for _, setup := range w.c.Setup {
		if err := setup(ctx); err != nil {
			return fmt.Errorf("setting the worker up: %w", err)
		}
	}
	w.c.Logger.Info("worker started", "event", "worker.started",
		"worker", w.c.Info.ID, "queues", w.c.Queues, "slots", w.c.Slots, "types", len(w.c.Registry.Types()))

	var executors, settler, background sync.WaitGroup
	w.startSlot = func() { executors.Go(func() { w.execute(stop) }) }
	w.inFlight.setSlots(w.c.Slots, w.startSlot)
	w.useProcessors()
	settler.Go(func() { w.settleAll(runCtx) })
	backgroundCtx, stopKeeping := context.WithCancel(runCtx)
	background.Go(func() { w.renewAll(backgroundCtx) })
	startedAt := w.c.Now()
	if w.c.Workers != nil {
		await(ctx, func() { w.beat(ctx, startedAt) }) // before the first claim: a paused queue is not claimed from once
	}
	background.Go(func() { w.beatAll(backgroundCtx, startedAt) })

	finished := make(chan struct{})
	defer close(finished)
	go w.countDown(ctx, stop, finished)
	w.claimUntilStopped(ctx, stop)
	stop.endStarts()
	w.inFlight.close() // what a settlement still brings is released, not begun
	w.c.Logger.Debug(claimsNothingMore, "event", "worker.stopping", "worker", w.c.Info.ID)
	w.status.Store("stopping")
	w.drain(stop, &executors)
	close(w.ended)
	w.finishSettling(&settler, stop)
	stopKeeping()
	await(backgroundCtx, background.Wait)
	w.leave(stop)
	return w.exitError()
}

// exitError is what Run returns.
func (w *Worker) exitError() error {
	order, _ := w.stop.Load().(stopOrder)
	if w.stuck.Load() > 0 { // it may have got stuck after another reason to stop
		order = stopOrder{"a handler is stuck", ErrStuck}
	}
	w.c.Logger.Info("worker stopped", "event", "worker.stopped",
		"worker", w.c.Info.ID, "why", cmp.Or(order.why, "asked to"), "done", w.done.Load(), "failed", w.failed.Load())
	return order.err
}

// MaxSlots is how many jobs one worker can run at once.
const MaxSlots = 10000

// slots is how many jobs the worker runs at once now.
func (w *Worker) slots() int { return w.inFlight.slotCount() }

// useProcessors says for how many slots processors are needed.
func (w *Worker) useProcessors() {
	if w.c.Processors != nil {
		w.c.Processors.Few(w.slots())
	}
}

// mostSlots is how many slots the worker takes, whatever people order.
func (w *Worker) mostSlots() int { return max(w.c.MaxSlots, w.c.Slots) }

// scale gives the worker as many slots as people ordered, at most those that it can
// take; 0 is as many as it was configured with. New slots begin at once. Where there
// are fewer, running jobs end as usual and their slots go with them, and what waits
// here unstarted is released for other workers. It says whether anything changed.
func (w *Worker) scale(ordered int) bool {
	before, n := w.slots(), w.c.Slots
	if ordered > 0 {
		n = min(ordered, w.mostSlots())
	}
	if n == before || !w.inFlight.setSlots(n, w.startSlot) {
		return false
	}
	w.useProcessors()
	if n < before {
		w.releaseUnstarted(w.c.Now().Add(time.Hour), fewerSlots)
	}
	notify(w.slotFreed)
	w.c.Logger.Info("number of slots changed", "event", "worker.scaled", "worker", w.c.Info.ID, "slots", n,
		"before", before)
	return true
}

// fewerSlots is why a claimed job is released unstarted.
const fewerSlots = "the worker has fewer slots"

// arrived adds claimed jobs to the line. asked is how many slots there were when
// they were asked for: where people took some away since, the jobs are released.
func (w *Worker) arrived(claimed []Claimed, at time.Time, asked int) {
	w.started.Add(int64(len(claimed)))
	if len(claimed) > 0 {
		w.pace.note(w.c.Now(), len(claimed))
	}
	w.inFlight.take(claimed, at)
	if len(claimed) > 0 && w.slots() < asked {
		w.releaseUnstarted(w.c.Now().Add(time.Hour), fewerSlots)
	}
}
