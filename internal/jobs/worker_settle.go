package jobs

import (
	"context"
	"time"
)

// settleBatchDelay is how long the settler waits for more runs to end while others are
// still at it, so that many are written at once.
const settleBatchDelay = 2 * time.Millisecond

// manyEnds is how many ends are written by themselves, with the next claim beside them on
// another connection. One transaction for both saves little then, and the slots would wait
// for the whole of it.
const manyEnds = 200

// settleAll writes the ends of runs until the channel of ended runs is closed.
func (w *Worker) settleAll(runCtx context.Context) {
	for x := range w.ended {
		batch := w.collectBatch(x)
		w.settle(runCtx, batch)
	}
}

// collectBatch collects runs that have ended, waiting a moment while others run.
func (w *Worker) collectBatch(x *inFlightJob) []*inFlightJob {
	batch := []*inFlightJob{x}
	if w.strict() {
		return batch
	}
	timer := time.NewTimer(settleBatchDelay)
	defer timer.Stop()
	for len(batch) < maxBatch {
		select {
		case more, open := <-w.ended:
			if !open {
				return batch
			}
			batch = append(batch, more)
		default:
			if waiting, running := w.inFlight.counts(); waiting+running == 0 {
				return batch
			}
			select {
			case more, open := <-w.ended:
				if !open {
					return batch
				}
				batch = append(batch, more)
			case <-timer.C:
				return batch
			}
		}
	}
	return batch
}

// settle writes a batch, again and again while the database is away: an error
// means "unknown", and settling again under the same lease is harmless.
func (w *Worker) settle(runCtx context.Context, batch []*inFlightJob) {
	defer func() {
		for _, x := range batch {
			w.inFlight.leaveSlot(x)
		}
		w.inFlight.drop(batch)
		notify(w.slotFreed)
	}()
	wait := 50 * time.Millisecond
	for {
		ends, results, err := w.write(runCtx, batch)
		if err == nil {
			w.unwritten.Store(false)
			w.trouble.clear(doingSettles)
			w.account(ends, results)
			w.closeIfStopping(runCtx)
			return
		}
		w.unwritten.Store(true)
		w.trouble.note(doingSettles, err)
		if !sleep(runCtx, w.spread(wait)) {
			w.c.Logger.Warn("database unreachable while stopping; the jobs run again when their leases end",
				"event", "worker.stop_unwritten", "jobs", len(batch))
			return
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// write settles a batch under the leases as they are now.
func (w *Worker) write(runCtx context.Context, batch []*inFlightJob) ([]Settlement, []error, error) {
	w.leases.Lock()
	defer w.leases.Unlock()
	ends := make([]Settlement, len(batch))
	for i, x := range batch {
		ends[i] = w.inFlight.settlement(x)
	}
	call, cancel := context.WithTimeout(runCtx, callTimeout)
	defer cancel()
	claimer, ok := w.c.Source.(SettleClaimer)
	if ok && len(batch) < manyEnds && w.claimsOnSettle() && w.claims.TryLock() {
		defer w.claims.Unlock()
		results, err := w.settleAndClaim(call, claimer, ends, w.inFlight.held(batch))
		return ends, results, err
	}
	results, err := w.c.Source.Settle(call, ends)
	return ends, results, err
}

// strict says that a job begins only when the end of the one before it is written.
func (w *Worker) strict() bool { return w.slots() == 1 && w.c.Prefetch == 0 }

// claimsOnSettle says whether the end of a run may bring the next job. It is
// one transaction in place of two.
func (w *Worker) claimsOnSettle() bool {
	return w.claiming.Load() && !w.c.Once && w.c.MaxJobs == 0 && len(w.openQueues()) > 0
}

// settleAndClaim ends runs, which leaves held slots, and takes the next jobs along, if
// there are any.
func (w *Worker) settleAndClaim(ctx context.Context, claimer SettleClaimer, ends []Settlement, held int) ([]error,
	error) {
	asked, slots := w.c.Now(), w.slots()
	r := w.request(w.openQueues(), w.capacityAfter(held), held)
	if r.Limit == 0 {
		return w.c.Source.Settle(ctx, ends)
	}
	results, next, err := claimer.SettleAndClaim(ctx, ends, r)
	w.arrived(next, asked, slots)
	return results, err
}

// closeIfStopping releases what pass took while the worker began to stop.
func (w *Worker) closeIfStopping(runCtx context.Context) {
	if w.claiming.Load() {
		return
	}
	came := w.inFlight.dequeue(w.c.Now().Add(time.Hour))
	for _, x := range came {
		w.seal(x, Settlement{Outcome: Released, Unstarted: true, Error: ErrShutdown.Error(), Started: w.c.Now()})
	}
	if len(came) > 0 {
		w.settle(runCtx, came)
	}
}

// account counts and logs what was written.
func (w *Worker) account(ends []Settlement, results []error) {
	written := ends[:0] // in place: thousands a second
	for i, end := range ends {
		if i < len(results) && results[i] != nil {
			w.logUnwritten(end, results[i])
			continue
		}
		if end.Unstarted {
			continue
		}
		switch end.Outcome {
		case Completed:
			w.done.Add(1)
		case Failed, Retried:
			w.failed.Add(1)
		}
		written = append(written, end)
		w.c.Ended(end)
	}
	w.logEnds(written)
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
