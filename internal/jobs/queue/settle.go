package queue

import (
	"context"
	"errors"
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
	ends := make([]pendingSettlement, len(settlements))
	for i := range settlements {
		ends[i] = pendingSettlement{Settlement: checked(&settlements[i]), index: i}
	}
	for batch := range slices.Chunk(ends, s.tables.MaxBatch) {
		if err := s.settle(ctx, batch, results, nil); err != nil {
			return nil, s.tables.NoteTrouble(err)
		}
	}
	return results, nil
}

// checked turns a completion whose follow-ups cannot be enqueued into a
// failure: they would otherwise be lost without a word.
func checked(x *jobs.Settlement) *jobs.Settlement {
	if len(x.FollowUps) == 0 {
		return x
	}
	y := *x
	if y.Outcome != jobs.Completed {
		y.FollowUps = nil
	}
	for _, n := range y.FollowUps {
		if err := n.Check(); err != nil {
			y.Outcome, y.FollowUps = jobs.Failed, nil
			y.Error = "the job was done, but a job that should follow it is refused: " + err.Error()
			break
		}
	}
	return &y
}

// settle writes ends, and claims n in the same transaction where it is not nil.
func (s *Store) settle(ctx context.Context, ends []pendingSettlement, results []error, n *next) error {
	ends, err := s.withoutSettled(ctx, ends)
	if err != nil || len(ends) == 0 {
		return err
	}
	err = s.settleTogether(ctx, ends, results, n)
	switch {
	case err == nil:
		s.forget(ends)
		s.wakeFor(ends)
		s.noteDelays(ends)
		return nil
	case refusal(err):
		if n != nil {
			n.won = false
		}
		if len(ends) == 1 {
			return s.settlePlainer(ctx, ends[0], results, err)
		}
	case !errors.Is(err, errShort):
		s.remember(ends)
		return err
	case len(ends) == 1:
		if err := s.lost(ctx, ends[0], results); err != nil {
			return err
		}
		s.forget(ends)
		return nil
	}
	half := len(ends) / 2
	if err := s.settle(ctx, ends[:half], results, nil); err != nil {
		return err
	}
	return s.settle(ctx, ends[half:], results, nil)
}

// wakeFor tells waiting workers about follow-ups.
func (s *Store) wakeFor(ends []pendingSettlement) {
	for _, e := range ends {
		s.wake(e.FollowUps)
	}
}
