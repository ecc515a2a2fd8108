package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// rememberUnclear notes that it is not known whether these ends were written.
func (s *Store) rememberUnclear(ends []pendingSettlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range ends {
		s.unclear[leaseName(e.Claimed.Lease)] = true
	}
}

func (s *Store) forgetUnclear(ends []pendingSettlement) {
	renewed := s.renewals.Unanswered()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unclear) == 0 && !renewed {
		return
	}
	for _, e := range ends {
		delete(s.unclear, leaseName(e.Claimed.Lease))
		s.renewals.Forget(e.Claimed.Lease.ID)
	}
}

// leaseName names a lease over all claims.
func leaseName(l jobs.Lease) string {
	return fmt.Sprintf("%s.%d", tables.RandomPart(tables.TokenOf(l)), l.ID)
}

// withoutSettled leaves out ends that an earlier call wrote though its answer
// was lost: the history knows their lease.
func (s *Store) withoutSettled(ctx context.Context, ends []pendingSettlement) ([]pendingSettlement, error) {
	s.mu.Lock()
	repeated := len(s.unclear) > 0 && slices.ContainsFunc(ends, func(e pendingSettlement) bool {
		return s.unclear[leaseName(e.Claimed.Lease)]
	})
	s.mu.Unlock()
	if !repeated {
		return ends, nil
	}
	var left []pendingSettlement
	for _, e := range ends {
		written, err := s.written(ctx, e)
		if err != nil {
			return nil, err
		}
		if written {
			s.forgetUnclear([]pendingSettlement{e})
		} else {
			left = append(left, e)
		}
	}
	return left, nil
}

// written asks the history whether it knows the end's lease.
func (s *Store) written(ctx context.Context, e pendingSettlement) (bool, error) {
	var n int
	found, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&n}, "SELECT 1 FROM cmsjobs_runs WHERE uuid = ? AND "+
		"job_id = ? AND lease = ?",
		e.Claimed.Job.UUID, e.Claimed.Lease.ID, tables.RandomPart(tables.TokenOf(e.Claimed.Lease)))
	if err != nil {
		return false, fmt.Errorf("asking whether jobs were settled: %w", err)
	}
	return found, nil
}

// lost notes that the end's lease does not hold any more: ErrLeaseLost, unless
// this same end was written before. The process that settles it again may be
// another than the one that got no answer. An end whose lease does hold is written
// once more (Renewals.Held says why it was not).
func (s *Store) lost(ctx context.Context, e pendingSettlement, results []error) error {
	written, err := s.written(ctx, e)
	if err != nil || written {
		return err
	}
	held, err := s.renewals.Held(ctx, e.Claimed.Lease)
	if err != nil {
		return err
	}
	if held {
		err = s.tables.InTx(ctx, "settling jobs", func(t tables.Transaction) error {
			return s.write(ctx, t, []pendingSettlement{e})
		})
		if !errors.Is(err, errShort) {
			return err
		}
	}
	results[e.index] = jobs.ErrLeaseLost
	return nil
}
