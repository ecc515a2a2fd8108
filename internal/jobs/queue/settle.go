package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Settle implements jobs.Source. It writes many ends in one transaction. A
// settlement whose lease is lost gets ErrLeaseLost and does not keep the
// others from being written, nor does one whose data the database refuses: it
// is written without them. After an error, what had been written stays
// written: settling the same again is harmless.
func (s *Store) Settle(ctx context.Context, settlements []jobs.Settlement) ([]error, error) {
	results := make([]error, len(settlements))
	for batch := range slices.Chunk(s.pendingOf(settlements), s.tables.MaxBatch) {
		if err := s.settle(ctx, batch, results, nil); err != nil {
			return nil, s.tables.NoteTrouble(err)
		}
	}
	return results, nil
}

// pendingOf are settlements on their way.
func (s *Store) pendingOf(settlements []jobs.Settlement) []pendingSettlement {
	ends := make([]pendingSettlement, len(settlements))
	for i := range settlements {
		ends[i] = pendingSettlement{Settlement: s.checked(&settlements[i]), index: i}
	}
	return ends
}

// checked prepares what follows a completion. One whose follow-ups cannot be enqueued
// becomes a failure: they would otherwise be lost without a message.
func (s *Store) checked(x *jobs.Settlement) *jobs.Settlement {
	if len(x.FollowUps) == 0 {
		return x
	}
	y := *x
	if y.Outcome != jobs.Completed {
		y.FollowUps = nil
		return &y
	}
	var err error
	if y.FollowUps, err = s.prepare(x.FollowUps); err != nil {
		y.Outcome, y.FollowUps = jobs.Failed, nil
		y.Error = "the job was done, but a job that should follow it is refused: " + err.Error()
	}
	return &y
}

// settle writes ends, and claims n in the same transaction where it is not nil.
// A claim that fails keeps no end from being written.
func (s *Store) settle(ctx context.Context, ends []pendingSettlement, results []error, n *next) error {
	ends, err := s.withoutSettled(ctx, ends)
	if err != nil || len(ends) == 0 {
		return err
	}
	err = s.settleTogether(ctx, ends, results, n)
	switch {
	case err == nil:
		s.forgetUnclear(ends)
		s.wakeFor(ends)
		s.noteDelays(ends)
		return nil
	case refusal(err):
		if n != nil {
			n.drop()
		}
		if len(ends) == 1 {
			return s.settleWithoutData(ctx, ends[0], results, err)
		}
	case !errors.Is(err, errShort):
		s.rememberUnclear(ends)
		return err
	case n != nil: // the claim may be what fell short
		n.drop()
		return s.settle(ctx, ends, results, nil)
	case len(ends) == 1:
		if err := s.lost(ctx, ends[0], results); err != nil {
			return err
		}
		s.forgetUnclear(ends)
		return nil
	}
	half := len(ends) / 2
	if err := s.settle(ctx, ends[:half], results, nil); err != nil {
		return err
	}
	return s.settle(ctx, ends[half:], results, nil)
}

// wakeFor wakes workers for follow-ups.
func (s *Store) wakeFor(ends []pendingSettlement) {
	for _, e := range ends {
		s.wake(e.FollowUps)
	}
}

// settleWithoutData writes an end that was refused for its data with less of them.
// Asking again with the same would hold up the worker's other ends for ever. An
// end that is refused to the last gets the reason as its result.
func (s *Store) settleWithoutData(ctx context.Context, e pendingSettlement, results []error, reason error) error {
	less, ok := withoutData(e, reason)
	if !ok {
		s.forgetUnclear([]pendingSettlement{e})
		results[e.index] = fmt.Errorf("the database refuses the end of the run: %w", reason)
		return nil
	}
	err := s.settle(ctx, []pendingSettlement{less}, results, nil)
	if err == nil && !e.bare && results[e.index] == nil {
		s.tables.Options.Logger.Warn("database refused the result or log lines of a run; its outcome is written "+
			"without them", "event", "job.result_refused",
			"type", e.Claimed.Job.Type, "id", e.Claimed.Job.ID, "uuid", e.Claimed.Job.UUID, "error", reason)
	}
	return err
}
