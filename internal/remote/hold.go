package remote

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// hold is the handler of every type: it puts the job into the line of its session
// and waits for the program to end it.
func (s *session) hold(ctx context.Context, job jobs.Job, limit time.Duration) error {
	r := &run{lease: newName(), job: job, limit: limit, ctx: ctx, said: make(chan Outcome, 1), status: Running,
		heard: s.hub.Worker.Now(), written: make(chan struct{})}
	s.add(r)
	err := s.await(ctx, r)
	s.leave(r)
	return err
}

func (s *session) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, r)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// keptEndings is how many ends are remembered for programs that ask again.
const keptEndings = 1000

// leave takes a run whose handler returns out of the program's hands.
func (s *session) leave(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.status = Lost
	delete(s.runs, r.lease)
	s.ended[r.lease], s.unwritten[r.job.ID] = r, r
	s.endings = append(s.endings, r)
	if len(s.endings) > keptEndings {
		delete(s.ended, s.endings[0].lease)
		s.endings = s.endings[1:]
	}
}

// await waits for the end of a run: by its program, its session or its worker.
func (s *session) await(ctx context.Context, r *run) error {
	timer := time.NewTimer(s.registration.Lease)
	defer timer.Stop()
	for {
		select {
		case o := <-r.said:
			return s.apply(ctx, r, o)
		case <-s.closing:
			return s.let(ctx, r)
		case <-ctx.Done():
			return s.stopped(ctx, r)
		case <-timer.C:
		}
		left, handed := s.left(r)
		switch {
		case left > 0:
			timer.Reset(left)
		case handed:
			if s.silent() { // before its slot is free: a dead program takes no more
				s.close(errSilent, 0)
			}
			return errSilent
		default:
			return jobs.RetryAfter(errNotFetched, 0)
		}
	}
}

// left is how long the program may still be silent about a run.
func (s *session) left(r *run) (left time.Duration, handed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registration.Lease - s.hub.Worker.Now().Sub(r.heard), r.handed
}

// let releases a run of a session that ends, unless its program has just ended it.
func (s *session) let(ctx context.Context, r *run) error {
	select {
	case o := <-r.said:
		return s.apply(ctx, r, o)
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !r.handed:
		return jobs.RetryAfter(s.why, 0)
	case errors.Is(s.why, errSilent): // as after a crash: the attempt counts
		return errSilent
	}
	return jobs.RetryAfter(s.why, s.delay)
}

// stopped asks the program to stop a run that was cancelled, or took too long, and
// waits until it has, or has lost its lease.
func (s *session) stopped(ctx context.Context, r *run) error {
	cause := context.Cause(ctx)
	s.mu.Lock()
	handed := r.handed
	r.status = Lost
	switch {
	case errors.Is(cause, jobs.ErrCancelled):
		r.status = Cancelled
	case errors.Is(cause, jobs.ErrTimeout):
		r.status = TimedOut
	}
	lost := r.status == Lost
	s.mu.Unlock()
	if !handed || lost {
		return ctx.Err()
	}
	timer := time.NewTimer(s.registration.Lease)
	defer timer.Stop()
	select {
	case o := <-r.said:
		if err := s.apply(ctx, r, o); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		return nil
	case <-timer.C:
	case <-s.closing:
	}
	return ctx.Err()
}

// apply makes a handler's end of what a program said.
func (s *session) apply(ctx context.Context, r *run, o Outcome) error {
	s.mu.Lock()
	r.took, r.done = true, o.Error == "" && !o.Released
	s.mu.Unlock()
	if r.done {
		if len(o.Result) == 0 {
			return nil
		}
		return jobs.SetResult(ctx, json.RawMessage(o.Result))
	}
	err := errors.New(jobs.PlainText(o.Error, 10_000))
	switch {
	case o.Released:
		return jobs.RetryAfter(err, o.Delay)
	case o.Permanent:
		return jobs.Permanent(err)
	}
	return err
}

// watchedSource hears which ends are written.
type watchedSource struct {
	jobs.Source
	s *session
}

// Settle implements jobs.Source.
func (w watchedSource) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	results, err := w.Source.Settle(ctx, ends)
	if err != nil {
		return results, err // it is said again
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for i, end := range ends {
		r, there := w.s.unwritten[end.Claimed.Job.ID]
		if !there {
			continue
		}
		delete(w.s.unwritten, end.Claimed.Job.ID)
		if i < len(results) {
			r.err = results[i]
		}
		if r.done && end.Outcome != jobs.Completed { // the lease in the table was lost at that moment
			r.err = jobs.ErrLeaseLost
		}
		close(r.written)
	}
	return results, nil
}

// watchedWorkers hears when people stop the worker.
type watchedWorkers struct {
	jobs.WorkerRegistry
	s *session
}

// Heartbeat implements jobs.WorkerRegistry.
func (w watchedWorkers) Heartbeat(ctx context.Context, i jobs.WorkerInfo) (jobs.ControlSignals, error) {
	o, err := w.WorkerRegistry.Heartbeat(ctx, i)
	if err == nil && o.Stop {
		w.s.mu.Lock()
		w.s.stop = true
		w.s.mu.Unlock()
	}
	return o, err
}
