package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/database"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// pendingSettlement is a settlement on its way into the tables.
type pendingSettlement struct {
	*jobs.Settlement
	index int  // in the caller's list
	bare  bool // without what the database may have refused
}

// errShort says that fewer rows than named were still held: the transaction is
// undone and split, until those that were lost stand alone.
var errShort = errors.New("a lease in the batch is lost")

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
	for batch := range slices.Chunk(ends, s.MaxBatch) {
		if err := s.settle(ctx, batch, results, nil); err != nil {
			return nil, s.NoteTrouble(err)
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

// write is the transaction. What needs the lease comes first.
func (s *Store) write(ctx context.Context, t tables.Transaction, ends []pendingSettlement) error {
	if err := s.moveToFailed(ctx, t, ends); err != nil {
		return err
	}
	if err := s.removeAndGiveBack(ctx, t, ends); err != nil {
		return err
	}
	for _, step := range []func(context.Context, tables.Tx, []pendingSettlement) error{s.recordRuns, s.releasePermits, s.freeKeys,
		s.storeLines, s.dropCancels, s.recordWaits} {
		if err := step(ctx, t.Own, ends); err != nil {
			return err
		}
	}
	for _, e := range ends {
		if len(e.FollowUps) > 0 {
			if _, err := s.insertAll(ctx, t, e.FollowUps); err != nil {
				return fmt.Errorf("enqueuing what follows %s: %w", e.Claimed.Job.Type, err)
			}
		}
	}
	return nil
}

// freeKeys ends unique keys with their jobs. A retried or released job keeps
// its key.
func (s *Store) freeKeys(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	gone := idsOf(ends, func(e pendingSettlement) bool { return e.gone() })
	if len(gone) == 0 {
		return nil
	}
	// A key is committed with its job, so one that is not there now is none of
	// these jobs'. Mostly there are none at all.
	var one int
	if found, err := s.QueryRow(ctx, q, []any{&one}, "SELECT 1 FROM cmsjobs_unique LIMIT 1"); err != nil || !found {
		return err
	}
	in, args := s.Dialect.In("job_id", gone)
	if _, err := s.Exec(ctx, q, "DELETE FROM cmsjobs_unique WHERE "+in, args...); err != nil {
		return fmt.Errorf("freeing unique keys: %w", err)
	}
	return nil
}

// gone says that the job's row is deleted.
func (e pendingSettlement) gone() bool {
	return e.Outcome != jobs.Retried && e.Outcome != jobs.Released
}

// idsOf lists the row numbers of ends, twins included.
func idsOf(ends []pendingSettlement, which func(pendingSettlement) bool) []int64 {
	var list []int64
	for _, e := range ends {
		if !which(e) {
			continue
		}
		list = append(list, e.Claimed.Lease.ID)
		for _, duplicate := range e.Claimed.Duplicates {
			list = append(list, duplicate.ID)
		}
	}
	return list
}

// dropCancels removes orders to cancel jobs that have ended.
func (s *Store) dropCancels(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	var uuids []string
	for _, e := range ends {
		if e.Outcome == jobs.Cancelled {
			uuids = append(uuids, e.Claimed.Job.UUID)
		}
	}
	if len(uuids) == 0 {
		return nil
	}
	in, args := database.InWords("uuid", uuids)
	_, err := s.Exec(ctx, q, "DELETE FROM cmsjobs_cancels WHERE "+in, args...)
	return err
}

// wakeFor tells waiting workers about follow-ups.
func (s *Store) wakeFor(ends []pendingSettlement) {
	for _, e := range ends {
		s.wake(e.FollowUps)
	}
}
