package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// caller calls the handlers of one slot, in a goroutine that is kept from run to run: a
// new one for each would cost more than all else that a short run costs here.
type caller struct {
	calls    chan func() error
	returned chan error
	lease    *time.Timer // of whileLeased, stopped between the runs
}

func newCaller() *caller {
	c := &caller{make(chan func() error), make(chan error, 1), time.NewTimer(time.Hour)}
	c.lease.Stop()
	go func(calls <-chan func() error, returned chan<- error) { // its own, also when c is abandoned
		for call := range calls {
			returned <- call()
		}
	}(c.calls, c.returned)
	return c
}

// leave ends the goroutine, as soon as the handler that it is in has returned.
func (c *caller) leave() { close(c.calls) }

// abandon leaves a handler that does not return to itself.
func (c *caller) abandon() {
	c.leave()
	*c = *newCaller()
}

// execute is one slot: it runs one job after the other.
func (w *Worker) execute(stop *stopPhases) {
	handlers := newCaller()
	defer handlers.leave()
	for x := w.inFlight.next(); x != nil; x = w.inFlight.next() {
		done, err := w.turn(stop)
		if err != nil {
			w.started.Add(-1)
			w.finishWithoutRun(x, Settlement{Outcome: Released, Unstarted: true, Error: ErrShutdown.Error()})
			continue
		}
		if w.inFlight.tooMany() { // people took slots away while this one waited for its turn
			done()
			w.started.Add(-1)
			w.finishWithoutRun(x, Settlement{Outcome: Released, Unstarted: true, Error: fewerSlots})
			continue
		}
		w.runOne(stop, x, handlers)
		done()
	}
}

// turn waits for a slot of the process. What was claimed ahead is released meanwhile.
func (w *Worker) turn(stop *stopPhases) (done func(), err error) {
	if w.c.Turn == nil {
		return func() {}, nil
	}
	if w.c.Prefetch > 0 {
		giveBack := time.AfterFunc(prefetchTime, w.giveBack)
		defer giveBack.Stop()
	}
	return w.c.Turn(stop.starts)
}

// runOne runs a claimed job and passes its end to the settler.
func (w *Worker) runOne(stop *stopPhases, x *inFlightJob, handlers *caller) {
	job := x.claimed.Job
	entry, known := w.c.Registry.Lookup(job.Type)
	switch {
	case x.overdue(w.c.Now(), w.c.Lease): // the process was paused: the job may be another's
		w.finishWithoutRun(x, Settlement{Outcome: Released, Error: ErrLeaseLost.Error()})
		return
	case x.claimed.Fault != nil:
		w.finishWithoutRun(x, Settlement{Outcome: Failed, Error: x.claimed.Fault.Error()})
		return
	case !known:
		w.finishWithoutRun(x, Settlement{Outcome: Released, Delay: time.Minute,
			Error: fmt.Sprintf("no handler for %q here", job.Type)})
		return
	case entry.Policy.MaxAge > 0 && x.taken.Sub(job.RunAt) > entry.Policy.MaxAge:
		result := json.RawMessage(fmt.Sprintf(`{"skipped":"older than %v when its turn came"}`, entry.Policy.MaxAge))
		w.finishWithoutRun(x, Settlement{Outcome: Completed, Result: result})
		return
	}
	ctx, cancel := context.WithCancelCause(stop.runCtx)
	defer cancel(nil)
	run := NewRun(w.c.Now)
	started := w.c.Now()
	if !w.inFlight.begin(x, run, cancel, started) {
		w.inFlight.leaveSlot(x)
		w.inFlight.drop([]*inFlightJob{x})
		notify(w.slotFreed)
		return
	}
	err := w.handle(WithRun(ctx, run), cancel, stop, x, entry, handlers)
	cause := context.Cause(ctx)
	if cause == nil && x.overdue(w.c.Now(), w.c.Lease) {
		cause = ErrLeaseLost
	}
	end := w.settlement(x, entry, err, cause)
	end.Started, end.Duration = started, w.c.Now().Sub(started)
	w.measured(end.Duration)
	w.end(x, end)
}

// timeoutError is ErrTimeout with the limit, put into words when it happens only.
type timeoutError time.Duration

func (o timeoutError) Error() string { return fmt.Sprintf("%v: %v", ErrTimeout, time.Duration(o)) }
func (o timeoutError) Unwrap() error { return ErrTimeout }

// handle runs the handler under its time limit and under its lease. A handler
// that does not return after its context was cancelled is left behind after
// StopTimeout, or when a stop leaves it no more time, and the worker stops: nothing
// in Go can end it.
func (w *Worker) handle(ctx context.Context, cancel context.CancelCauseFunc, stop *stopPhases, x *inFlightJob,
	entry Entry, handlers *caller) error {
	job := x.claimed.Job
	limit := entry.Policy.RunTimeout(job.Timeout)
	ctx, done := context.WithTimeoutCause(ctx, limit, timeoutError(limit))
	defer done()
	alive := func() bool { return !x.overdue(w.c.Now(), w.c.Lease) }
	handlers.calls <- func() error { return recoverPanic(leaseContext{ctx, alive}, entry, job) }
	returned := handlers.returned
	if ended, err := w.whileLeased(ctx, cancel, x, handlers); ended {
		return withCause(ctx, err)
	}
	timer := time.NewTimer(w.c.StopTimeout)
	defer timer.Stop()
	told := w.c.Now()
	select {
	case err := <-returned:
		return withCause(ctx, err)
	case <-timer.C:
	case <-stop.returning.Done():
	}
	waited := w.c.Now().Sub(told)
	w.c.Logger.Error("handler ignores its cancellation; the worker finishes its other jobs and must be restarted",
		"event", "worker.handler_stuck",
		"type", job.Type, "id", job.ID, "uuid", job.UUID, "waited", waited)
	err := w.waitUnresponsive(ctx, stop, returned, waited)
	if errors.As(err, new(unresponsiveError)) {
		handlers.abandon()
	}
	return err
}

// whileLeased waits until the handler has returned (ended) or its context has
// ended. It cancels the run when its lease was not renewed for two thirds of
// its length by the monotonic clock: before another worker can take the job,
// this one must have stopped. It waits for nothing else, neither a lock nor the
// database, which may be what does not answer.
func (w *Worker) whileLeased(ctx context.Context, cancel context.CancelCauseFunc, x *inFlightJob,
	handlers *caller) (ended bool, err error) {
	handlers.lease.Reset(min(x.left(w.c.Now(), w.c.Lease), prefetchTime))
	defer handlers.lease.Stop()
	for long := false; ; {
		select {
		case err := <-handlers.returned:
			return true, err
		case <-ctx.Done():
			return false, nil
		case <-handlers.lease.C:
		}
		if w.c.Processors != nil && !long {
			long = true
			defer w.c.Processors.Long()()
		}
		w.giveBack()
		if left := x.left(w.c.Now(), w.c.Lease); left > 0 { // it was renewed meanwhile
			handlers.lease.Reset(left)
			continue
		}
		w.c.Logger.Warn("run cancelled: its lease was not renewed in time, and another worker may soon take the job",
			"event", "lease.expired",
			"type", x.claimed.Job.Type, "id", x.claimed.Job.ID, "uuid", x.claimed.Job.UUID)
		cancel(ErrLeaseLost)
	}
}

// leaseContext is a run's context that says it has ended as soon as the lease is no
// longer surely ours. A process that was paused for longer than its lease sees
// it at its next look, before the renewer had its turn.
type leaseContext struct {
	context.Context
	alive func() bool
}

func (f leaseContext) Err() error {
	if err := f.Context.Err(); err != nil || f.alive() {
		return err
	}
	return context.Canceled
}

// waitUnresponsive keeps the lease of an unresponsive handler for as long as other jobs run
// here, so that nobody runs the job beside it, and gives up on it when only
// unresponsive handlers are left: then the process ends, and they with it.
func (w *Worker) waitUnresponsive(ctx context.Context, stop *stopPhases, returned <-chan error,
	waited time.Duration) error {
	w.stuck.Add(1)
	w.requestStop("a handler is stuck", ErrStuck)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-returned:
			w.stuck.Add(-1)
			return withCause(ctx, err)
		case <-stop.returning.Done():
			return unresponsiveError{context.Cause(ctx), waited}
		case <-look.C:
			waiting, running := w.inFlight.counts()
			if waiting == 0 && int64(running) <= w.stuck.Load() {
				return unresponsiveError{context.Cause(ctx), waited}
			}
		}
	}
}

// unresponsiveError is how a run ends whose handler still goes on.
type unresponsiveError struct {
	cause  error
	waited time.Duration
}

func (s unresponsiveError) Error() string {
	return fmt.Sprintf("%v (and it did not stop within %v when told to)", s.cause, s.waited.Round(time.Millisecond))
}
func (s unresponsiveError) Unwrap() error { return s.cause }

// withCause makes the reason why a run was cancelled the message, where the
// handler only says that its context ended, or that what it did broke off when
// its time was over.
func withCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// recoverPanic turns a panic into an error that carries the stack.
func recoverPanic(ctx context.Context, entry Entry, job Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler of %s panicked: %v\n\n%s", job.Type, p, debug.Stack())
		}
	}()
	return entry.Run(ctx, job)
}

// settlement is the one place that decides how a run ended.
func (w *Worker) settlement(x *inFlightJob, entry Entry, err, cause error) Settlement {
	job := x.claimed.Job
	x.run.redactIgnored(w.c.Redact)
	result, next := x.run.Result()
	_, lines := x.run.Snapshot()
	w.redact(nil, lines)
	end := Settlement{Result: result, Lines: lines}
	if err == nil {
		end.Outcome, end.FollowUps = Completed, next
		return end
	}
	end.Error = err.Error()
	delay, later := AsRetryAfter(err)
	wait, dependency, probed := x.run.failedProbe()
	switch {
	case errors.Is(cause, ErrCancelled):
		end.Outcome = Cancelled
	case errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost):
		end.Outcome = Released
	case later:
		end.Outcome, end.Delay, end.WaitsFor = Released, delay, waitsFor(err)
	case IsPermanent(err):
		end.Outcome = Failed
	case probed:
		end.Outcome, end.Delay, end.WaitsFor = Released, wait, dependency
	case !errors.Is(err, ErrTimeout) && w.c.DatabaseTrouble(err): // a run that took too long may have been in a query
		end.Outcome, end.Delay = Released, entry.Policy.Backoff(1)
	case job.Last():
		end.Outcome = Failed
	default:
		end.Outcome, end.Delay = Retried, entry.Policy.Backoff(job.Attempt)
	}
	if errors.As(err, new(unresponsiveError)) { // it may do its work until the process is gone: nobody runs it beside
		end.Delay = max(end.Delay, w.c.Lease)
	}
	return end
}

// redact takes secrets out of what a handler told.
func (w *Worker) redact(p *Progress, lines []LogLine) {
	if p != nil {
		p.Note = w.c.Redact(p.Note)
	}
	for i := range lines {
		lines[i].Text = w.c.Redact(lines[i].Text)
	}
}

// finishWithoutRun ends a job that no handler saw.
func (w *Worker) finishWithoutRun(x *inFlightJob, end Settlement) {
	end.Started = w.c.Now()
	w.end(x, end)
}

// seal completes what is to be written of x.
func (w *Worker) seal(x *inFlightJob, end Settlement) {
	end.Claimed, end.Worker = x.claimed, w.c.Info.ID
	if end.Error != "" {
		end.Error = w.c.Redact(end.Error)
	}
	end.Wait = max(end.Started.Sub(x.claimed.Job.RunAt), 0)
	x.end = end
}

// end passes a run to the settler and frees its slot. A strict
// worker's slot is freed when the run is written.
func (w *Worker) end(x *inFlightJob, end Settlement) {
	w.seal(x, end)
	if !w.strict() {
		w.inFlight.leaveSlot(x)
	}
	w.ended <- x
	notify(w.slotFreed)
}

// measured folds the length of a run into the moving average.
func (w *Worker) measured(d time.Duration) {
	old := w.meanNanos.Load()
	next := max(int64(d), int64(time.Microsecond))
	if old > 0 {
		next = old + (next-old)/8
	}
	w.meanNanos.Store(next)
}
