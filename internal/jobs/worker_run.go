package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// execute is one slot: it runs one job after the other.
func (w *Worker) execute(stop *stopPhases) {
	for x := w.held.next(); x != nil; x = w.held.next() {
		w.runOne(stop, x)
	}
}

// runOne runs a claimed job and passes its end to the settler.
func (w *Worker) runOne(stop *stopPhases, x *holding) {
	job := x.claimed.Job
	entry, known := w.c.Registry.Lookup(job.Kind)
	switch {
	case x.overdue(w.c.Now(), w.c.Lease): // the process was paused: the job may be another's
		w.endUnrun(x, Settlement{Verdict: Released, Error: ErrLeaseLost.Error()})
		return
	case x.claimed.Fault != nil:
		w.endUnrun(x, Settlement{Verdict: Buried, Error: x.claimed.Fault.Error()})
		return
	case !known:
		w.endUnrun(x, Settlement{Verdict: Released, Delay: time.Minute, Error: fmt.Sprintf("no handler for %q here", job.Kind)})
		return
	case entry.Policy.MaxAge > 0 && x.taken.Sub(job.RunAt) > entry.Policy.MaxAge:
		result := json.RawMessage(fmt.Sprintf(`{"skipped":"older than %v when its turn came"}`, entry.Policy.MaxAge))
		w.endUnrun(x, Settlement{Verdict: Completed, Result: result})
		return
	}
	ctx, cancel := context.WithCancelCause(stop.life)
	defer cancel(nil)
	run := NewRun(w.c.Now)
	started := w.c.Now()
	if !w.held.begin(x, run, cancel, started) {
		w.held.leaveSlot(x)
		w.held.drop([]*holding{x})
		poke(w.freed)
		return
	}
	err := w.handle(WithRun(ctx, run), cancel, stop, x, entry)
	cause := context.Cause(ctx)
	if cause == nil && x.overdue(w.c.Now(), w.c.Lease) {
		cause = ErrLeaseLost
	}
	end := w.settlement(x, entry, err, cause)
	end.Started, end.Duration = started, w.c.Now().Sub(started)
	w.measured(end.Duration)
	w.end(x, end)
}

// overtime is ErrTimeout with the limit, put into words when it happens only.
type overtime time.Duration

func (o overtime) Error() string { return fmt.Sprintf("%v: %v", ErrTimeout, time.Duration(o)) }
func (o overtime) Unwrap() error { return ErrTimeout }

// handle runs the handler under its time limit and under its lease. A handler
// that does not return after its context was cancelled is left behind after
// Stubborn, or when a stop leaves it no more time, and the worker stops: nothing
// in Go can end it.
func (w *Worker) handle(ctx context.Context, cancel context.CancelCauseFunc, stop *stopPhases, x *holding,
	entry Entry) error {
	job := x.claimed.Job
	limit := entry.Policy.RunTimeout(job.Timeout)
	ctx, done := context.WithTimeoutCause(ctx, limit, overtime(limit))
	defer done()
	alive := func() bool { return !x.overdue(w.c.Now(), w.c.Lease) }
	returned := make(chan error, 1)
	go func() { returned <- guarded(fenced{ctx, alive}, entry, job) }()
	if err, ended := w.whileLeased(ctx, cancel, x, returned); ended {
		return causeFirst(ctx, err)
	}
	patience := time.NewTimer(w.c.Stubborn)
	defer patience.Stop()
	told := w.c.Now()
	select {
	case err := <-returned:
		return causeFirst(ctx, err)
	case <-patience.C:
	case <-stop.returning.Done():
	}
	waited := w.c.Now().Sub(told)
	w.c.Logger.Error("a handler ignores that it was told to stop; the worker finishes its other jobs and must be restarted", "event", "worker.handler_stuck",
		"type", job.Kind, "id", job.ID, "uuid", job.UUID, "waited", waited)
	return w.outlast(ctx, stop, returned, waited)
}

// whileLeased waits until the handler has returned (ended) or its context has
// ended. It cancels the run when its lease was not renewed for two thirds of
// its length by the monotonic clock: before another worker can take the job,
// this one must have stopped. It waits for nothing else, neither a lock nor the
// database, which may be what does not answer.
func (w *Worker) whileLeased(ctx context.Context, cancel context.CancelCauseFunc, x *holding,
	returned <-chan error) (err error, ended bool) {
	lease := time.NewTimer(x.left(w.c.Now(), w.c.Lease))
	defer lease.Stop()
	for {
		select {
		case err := <-returned:
			return err, true
		case <-ctx.Done():
			return nil, false
		case <-lease.C:
		}
		if left := x.left(w.c.Now(), w.c.Lease); left > 0 { // it was renewed meanwhile
			lease.Reset(left)
			continue
		}
		w.c.Logger.Warn("a run is cancelled: its lease was not renewed in time, and another worker may soon take the job", "event", "lease.expired",
			"type", x.claimed.Job.Kind, "id", x.claimed.Job.ID, "uuid", x.claimed.Job.UUID)
		cancel(ErrLeaseLost)
	}
}

// fenced is a run's context that says it has ended as soon as the lease is no
// longer surely ours. A process that was paused for longer than its lease sees
// it at its next look, before the renewer had its turn.
type fenced struct {
	context.Context
	alive func() bool
}

func (f fenced) Err() error {
	if err := f.Context.Err(); err != nil || f.alive() {
		return err
	}
	return context.Canceled
}

// outlast keeps the lease of a stubborn handler for as long as other jobs run
// here, so that nobody runs the job beside it, and gives up on it when only
// stubborn handlers are left: then the process ends, and they with it.
func (w *Worker) outlast(ctx context.Context, stop *stopPhases, returned <-chan error,
	waited time.Duration) error {
	w.stuck.Add(1)
	w.requestStop("a handler is stuck", ErrStuck)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-returned:
			w.stuck.Add(-1)
			return causeFirst(ctx, err)
		case <-stop.returning.Done():
			return stubborn{context.Cause(ctx), waited}
		case <-look.C:
			waiting, running := w.held.counts()
			if waiting == 0 && int64(running) <= w.stuck.Load() {
				return stubborn{context.Cause(ctx), waited}
			}
		}
	}
}

// stubborn is how a run ends whose handler still goes on.
type stubborn struct {
	cause  error
	waited time.Duration
}

func (s stubborn) Error() string {
	return fmt.Sprintf("%v (and it did not stop within %v when told to)", s.cause, s.waited.Round(time.Millisecond))
}
func (s stubborn) Unwrap() error { return s.cause }

// causeFirst makes the reason why a run was cancelled the message, where the
// handler only says that its context ended, or that what it did broke off when
// its time was over.
func causeFirst(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// guarded turns a panic into an error that carries the stack.
func guarded(ctx context.Context, entry Entry, job Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler of %s panicked: %v\n\n%s", job.Kind, p, debug.Stack())
		}
	}()
	return entry.Run(ctx, job)
}

// settlement is the one place that decides how a run ended.
func (w *Worker) settlement(x *holding, entry Entry, err, cause error) Settlement {
	job := x.claimed.Job
	result, next := x.run.Outcome()
	_, lines := x.run.Snapshot()
	w.redact(nil, lines)
	end := Settlement{Result: result, Lines: lines}
	if err == nil {
		end.Verdict, end.FollowUps = Completed, next
		return end
	}
	end.Error = err.Error()
	delay, later := AsRetryAfter(err)
	wait, dependency, probed := x.run.failedProbe()
	switch {
	case errors.Is(cause, ErrCancelled):
		end.Verdict = Cancelled
	case errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost):
		end.Verdict = Released
	case later:
		end.Verdict, end.Delay, end.WaitsFor = Released, delay, waitsFor(err)
	case IsPermanent(err):
		end.Verdict = Buried
	case probed:
		end.Verdict, end.Delay, end.WaitsFor = Released, wait, dependency
	case !errors.Is(err, ErrTimeout) && w.c.DatabaseTrouble(err): // a run that took too long may have been in a query
		end.Verdict, end.Delay = Released, entry.Policy.Backoff(1)
	case job.Last():
		end.Verdict = Buried
	default:
		end.Verdict, end.Delay = Retried, entry.Policy.Backoff(job.Attempt)
	}
	if errors.As(err, new(stubborn)) { // it may do its work until the process is gone: nobody runs it beside
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

// endUnrun ends a job that no handler saw.
func (w *Worker) endUnrun(x *holding, end Settlement) {
	end.Started = w.c.Now()
	w.end(x, end)
}

// seal completes what is to be written of x.
func (w *Worker) seal(x *holding, end Settlement) {
	end.Claimed, end.Worker = x.claimed, w.c.Info.ID
	if end.Error != "" {
		end.Error = w.c.Redact(end.Error)
	}
	end.Wait = max(x.taken.Sub(x.claimed.Job.RunAt), 0)
	x.end = end
}

// end passes a run to the settler and frees its slot. With one slot the slot
// is freed when the run is written: strictly one job at a time.
func (w *Worker) end(x *holding, end Settlement) {
	w.seal(x, end)
	if w.c.Slots > 1 {
		w.held.leaveSlot(x)
	}
	w.ended <- x
	poke(w.freed)
}
