package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// errNothing undoes a transaction that found nothing to do.
var errNothing = errors.New("nothing to do")

// defaultChange is how many jobs one call changes by default.
const defaultChange = 1000

func changeLimit(limit int) int {
	if limit <= 0 {
		return defaultChange
	}
	return limit
}

// walk goes over the matching records of a source, oldest first, and lets each
// change in parts, until limit were changed or the source ends. What each does
// not change is stepped over.
func walk(ctx context.Context, sh recordSource, f jobs.Filter, limit int, part int,
	each func([]record) (int, error)) (int64, error) {
	var changed int64
	for from := (keysetCursor{oldest: true}); changed < int64(limit); {
		p, err := sh.read(ctx, f, from, min(part, limit-int(changed)))
		if err != nil {
			return changed, err
		}
		if len(p.items) > 0 {
			n, err := each(p.items)
			changed += int64(n)
			if err != nil {
				return changed, err
			}
		}
		if p.end {
			return changed, nil
		}
		from.key = p.last.key
	}
	return changed, nil
}

// Cancel ends waiting jobs (their rows go, a run "cancelled" is recorded) and
// tells the workers of running ones to stop. PHP's own jobs, and those of types
// that are not registered here, stay as they are.
// It changes at most limit jobs, oldest first, and says how many.
func (s *Store) Cancel(ctx context.Context, f jobs.Filter, limit int) (int64, error) {
	return walk(ctx, recordSource{"w", s.readLive}, f, changeLimit(limit), 200, func(rows []record) (int, error) {
		var waiting, running []record
		for _, r := range rows {
			switch {
			case !r.claimable:
			case r.Status == jobs.StatusQueued:
				waiting = append(waiting, r)
			default:
				running = append(running, r)
			}
		}
		n, err := s.cancelWaiting(ctx, waiting)
		if err != nil {
			return n, err
		}
		m, err := s.cancelRunning(ctx, running)
		return n + m, err
	})
}

// Restorable says whether the history keeps all that is needed to enqueue a waiting job
// again after it was cancelled: not of confidential or large ones.
func (s *Store) Restorable(r jobs.Record) bool {
	kept, origin, err := jobs.Parse(r.Payload, s.known)
	return err == nil && origin == jobs.Ours && !s.tables.Confidential(r.Type) &&
		s.tables.Keeps(kept.Data, kept.Metadata)
}

// cancelWaiting removes rows that still wait; one that a worker has claimed in
// the meantime stays.
func (s *Store) cancelWaiting(ctx context.Context, rows []record) (n int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	err = s.tables.InTx(ctx, "cancelling jobs", func(t tables.Transaction) error {
		var gone []tables.Run
		var ids []int64
		clock, err := s.tables.ReadClock(ctx, t.Main)
		if err != nil {
			return err
		}
		now := time.Unix(clock, 0)
		for _, r := range rows {
			one, err := s.tables.Exec(ctx, t.Main, fmt.Sprintf("DELETE FROM %s WHERE id = %d AND attempts = %d AND %s",
				s.tables.Layout.Table().Name, r.ID, r.Attempt, s.tables.Layout.Waiting()))
			if err != nil {
				return err
			}
			if one == 0 {
				continue
			}
			ids = append(ids, r.ID)
			kept, _, _ := jobs.Parse(r.Payload, s.known) // what cannot be read leaves nothing to keep
			gone = append(gone,
				tables.Run{Job: jobs.Job{ID: r.ID, UUID: r.UUID, Type: tables.CutWord(r.Type), Queue: r.Queue,
					Attempt: r.Attempt, EnqueuedAt: r.EnqueuedAt, Metadata: kept.Metadata},
					Outcome: jobs.Cancelled.String(), Wait: now.Sub(r.RunAt), Error: "cancelled while it waited",
					Data: kept.Data, Withheld: s.tables.Confidential(r.Type)})
		}
		if n = len(ids); n == 0 {
			return errNothing
		}
		in, args := s.tables.Dialect.In("job_id", ids)
		if _, err := s.tables.Exec(ctx, t.Own, "DELETE FROM cmsjobs_unique WHERE "+in, args...); err != nil {
			return err
		}
		return s.tables.InsertRuns(ctx, t.Own, gone)
	})
	if errors.Is(err, errNothing) {
		return 0, nil
	}
	if err != nil {
		n = 0
	}
	return n, err
}

// cancelRunning leaves an order for the workers that run the jobs. One that is
// ordered already is not counted again.
func (s *Store) cancelRunning(ctx context.Context, rows []record) (n int, err error) {
	for _, r := range rows {
		one, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_cancels",
			"uuid, at, by_whom", "(?, "+s.tables.MillisNow()+", '')"), r.UUID)
		if err != nil {
			return n, fmt.Errorf("ordering a running job to stop: %w", err)
		}
		n += int(one)
	}
	return n, nil
}

// RunNow makes waiting jobs due now, PHP's own and those of unknown types left
// out. It changes at most limit jobs, oldest
// first, and says how many were not due before.
func (s *Store) RunNow(ctx context.Context, f jobs.Filter, limit int) (int64, error) {
	f.Statuses = []jobs.Status{jobs.StatusQueued}
	t := s.tables.Layout.Table()
	n, err := walk(ctx, recordSource{"w", s.readLive}, f, changeLimit(limit), 500, func(rows []record) (int, error) {
		var ids []int64
		for _, r := range allowed(f, rows) {
			if r.claimable {
				ids = append(ids, r.ID)
			}
		}
		if len(ids) == 0 {
			return 0, nil
		}
		in, args := s.tables.Dialect.In("id", ids)
		var n int64
		err := s.tables.InTx(ctx, "making jobs due", func(x tables.Transaction) (err error) {
			n, err = s.tables.Exec(ctx, x.Main, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s AND %s AND %s > %s",
				t.Name, t.Due.Name, t.Due.FromExpr(s.tables.SecondsNow()), in, s.tables.Layout.Waiting(), t.Due.Name,
				t.Due.FromExpr(s.tables.SecondsNow())), args...)
			return err
		})
		return int(n), err
	})
	if n > 0 {
		s.tables.Options.Wake("")
	}
	return n, err
}

// allowed leaves out what the filter does not allow to be changed.
func allowed(f jobs.Filter, rows []record) []record {
	if f.Allow == nil {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r record) bool { return !f.Allow(r.Record) })
}
