package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// alike are ends that one statement can write.
type alike struct {
	outcome   jobs.Outcome
	duplicate bool
	delay     time.Duration
	failure   string
	attempt   int
	since     int64  // what reserved_at may be
	tried     string // and what else it may be
	token     string
}

// changes sorts ends and their duplicates into as few statements as can be. Each
// locks in the order of ids, the one order for all.
func (s *Store) changes(ends []pendingSettlement) []*guardedUpdate {
	groups := map[alike]*guardedUpdate{}
	var list []*guardedUpdate
	add := func(e pendingSettlement, l jobs.Lease, duplicate bool) {
		key := alike{outcome: e.Outcome, duplicate: duplicate, delay: e.Delay, attempt: l.Attempt, since: l.ReservedAt}
		tried := s.renewals.Tried(l.ID)
		if len(tried) > 0 {
			key.tried = fmt.Sprint(tried)
		}
		if e.Outcome == jobs.Retried {
			key.failure = e.Error
		}
		if s.tables.Layout.Name() == tables.Extended {
			key.token = tables.TokenOf(l)
		}
		g := groups[key]
		if g == nil {
			g = &guardedUpdate{}
			g.verb, g.args = s.endOf(*e.Settlement, duplicate)
			g.cond, g.more = s.tables.Layout.Guard(l, tried)
			groups[key], list = g, append(list, g)
		}
		g.ids = append(g.ids, l.ID)
	}
	for _, e := range ends {
		add(e, e.Claimed.Lease, false)
		for _, duplicate := range e.Claimed.Duplicates {
			add(e, duplicate, true)
		}
	}
	for _, g := range list {
		slices.Sort(g.ids)
	}
	return list
}

// deleteAndRelease deletes the rows of jobs that ended and releases the others.
func (s *Store) deleteAndRelease(ctx context.Context, t tables.Transaction, ends []pendingSettlement) error {
	for _, g := range s.changes(ends) {
		statement, args := g.statement(s.tables.Dialect)
		n, err := s.tables.Exec(ctx, t.Main, statement, args...)
		if err != nil {
			return err
		}
		if n != int64(len(g.ids)) {
			return errShort
		}
	}
	return nil
}

// endOf says what becomes of a row. A duplicate that is not done is released as it
// was: its attempt is not counted, and it is not delayed.
func (s *Store) endOf(e jobs.Settlement, duplicate bool) (string, []any) {
	t := s.tables.Layout.Table()
	switch e.Outcome {
	case jobs.Retried, jobs.Released:
		due := ""
		if !duplicate && (e.Delay > 0 || e.Outcome == jobs.Retried) {
			due = s.tables.SecondsNow() + fmt.Sprintf(" + %d", tables.WholeSeconds(e.Delay))
		} else if s.tables.Layout.Name() == tables.Stock {
			due = s.tables.ReleasedDue()
		}
		if duplicate {
			e.Outcome = jobs.Released
		}
		set, args := s.tables.Layout.Release(due, e, e.Outcome == jobs.Released)
		return "UPDATE " + t.Name + " SET " + set, args
	}
	return "DELETE FROM " + t.Name, nil
}

// write is the transaction. What needs the lease comes first.
func (s *Store) write(ctx context.Context, t tables.Transaction, ends []pendingSettlement) error {
	if err := s.moveToFailed(ctx, t, ends); err != nil {
		return err
	}
	if err := s.deleteAndRelease(ctx, t, ends); err != nil {
		return err
	}
	for _, step := range []func(context.Context, tables.Tx, []pendingSettlement) error{s.recordRuns, s.releasePermits,
		s.freeKeys,
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
	// these jobs'. Mostly there are none at all; for one job, asking costs as much as deleting.
	if len(gone) > 1 {
		var one int
		if found, err := s.tables.QueryRow(ctx, q, []any{&one}, "SELECT 1 FROM cmsjobs_unique LIMIT 1"); err != nil ||
			!found {
			return err
		}
	}
	in, args := s.tables.Dialect.In("job_id", gone)
	if _, err := s.tables.Exec(ctx, q, "DELETE FROM cmsjobs_unique WHERE "+in, args...); err != nil {
		return fmt.Errorf("freeing unique keys: %w", err)
	}
	return nil
}

// dropCancels removes requests to cancel jobs that have ended.
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
	_, err := s.tables.Exec(ctx, q, "DELETE FROM cmsjobs_cancels WHERE "+in, args...)
	return err
}
