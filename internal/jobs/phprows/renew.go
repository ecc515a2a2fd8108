package phprows

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// guarded are leases that one condition holds for.
type guarded struct {
	cond, after string // before and after a renewal
	args, more  []any
	ids         []int64
	leases      []jobs.Lease
}

// byGuard sorts leases by their condition, the rows of each in order.
func (s *Store) byGuard(leases []jobs.Lease, until int64) []*guarded {
	groups, list := map[string]*guarded{}, []*guarded(nil)
	for _, l := range leases {
		cond, args := s.Layout.Guard(l, s.triedRenewals(l.ID))
		if groups[cond] == nil || len(groups[cond].ids) >= 1000 {
			renewed := l
			renewed.ReservedAt = until
			after, more := s.Layout.Guard(renewed, nil)
			groups[cond] = &guarded{cond: cond, args: args, after: after, more: more}
			list = append(list, groups[cond])
		}
		groups[cond].ids, groups[cond].leases = append(groups[cond].ids, l.ID), append(groups[cond].leases, l)
	}
	for _, g := range list {
		slices.Sort(g.ids)
	}
	return list
}

// triedRenewals are the values that unanswered renewals of a row may have written.
func (s *Store) triedRenewals(id int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried[id])
}

// Renew implements php.Source.
func (s *Store) Renew(ctx context.Context, leases []jobs.Lease, lease time.Duration) ([]jobs.Lease, error) {
	s.SetLeaseLength(lease)
	now, err := s.ReadClock(ctx, s.DB)
	if err != nil {
		return nil, s.NoteTrouble(fmt.Errorf("renewing leases of PHP's jobs: %w", err))
	}
	until := s.LeaseMark(now, int64(lease.Seconds()))
	held := map[int64]bool{}
	for _, g := range s.byGuard(leases, until) {
		if err := s.renew(ctx, g, until, held); err != nil {
			if database.Classify(err).Unclear() {
				s.noteTried(g.leases, until)
			}
			// What is renewed already must not be taken for lost by its old lease.
			s.noteTried(slices.DeleteFunc(slices.Clone(leases), func(l jobs.Lease) bool { return !held[l.ID] }), until)
			return nil, s.NoteTrouble(fmt.Errorf("renewing leases of PHP's jobs: %w", err))
		}
	}
	renewed := make([]jobs.Lease, len(leases))
	for i, l := range leases {
		s.forget(l.ID)
		if held[l.ID] {
			l.ReservedAt = until
			renewed[i] = l
		}
	}
	return renewed, nil
}

func (s *Store) noteTried(leases []jobs.Lease, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		if !slices.Contains(s.tried[l.ID], until) {
			s.tried[l.ID] = append(s.tried[l.ID], until)
		}
	}
}

func (s *Store) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tried, id)
}

// renew extends the leases of one group. Where some are lost, it asks which are not.
func (s *Store) renew(ctx context.Context, g *guarded, until int64, held map[int64]bool) error {
	in, inArgs := s.Dialect.In("id", g.ids)
	t := s.Layout.Table()
	var n int64
	err := database.Retry(ctx, "extending", func() (err error) {
		n, err = s.Exec(ctx, s.DB, "UPDATE "+t.Name+" SET "+s.Layout.Renew(until)+" WHERE "+in+" AND "+g.cond,
			slices.Concat(inArgs, g.args)...)
		return err
	})
	if err != nil {
		return err
	}
	if n == int64(len(g.ids)) {
		for _, id := range g.ids {
			held[id] = true
		}
		return nil
	}
	return s.Query(ctx, s.DB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		held[id] = true
		return err
	}, "SELECT id FROM "+t.Name+" WHERE "+in+" AND "+g.after, slices.Concat(inArgs, g.more)...)
}

// Release implements php.Source.
func (s *Store) Release(ctx context.Context, list []php.Job) error {
	leases := make([]jobs.Lease, len(list))
	for i := range list {
		leases[i] = list[i].Lease
	}
	for _, g := range s.byGuard(leases, 0) {
		in, inArgs := s.Dialect.In("id", g.ids)
		set, args := s.Layout.Release(s.releasedDue(), jobs.Settlement{Outcome: jobs.Released}, true)
		err := database.Retry(ctx, "releasing jobs of PHP", func() error {
			_, err := s.Exec(ctx, s.DB, "UPDATE "+s.Layout.Table().Name+" SET "+set+" WHERE "+in+" AND "+g.cond,
				slices.Concat(args, inArgs, g.args)...)
			return err
		})
		if err != nil {
			return s.NoteTrouble(err)
		}
		for _, id := range g.ids {
			s.forget(id)
		}
	}
	return nil
}

// releasedDue is when a row is due again that is released uncounted: as before,
// but not in the second in which its lease was written. The next claim, which
// raises attempts to the same number, then writes another lease.
func (s *Store) releasedDue() string {
	t := s.Layout.Table()
	mark := t.Locked.FromExpr(fmt.Sprintf("%s + %d", s.SecondsNow(), s.LeaseMark(0, int64(s.LeaseLength().Seconds()))))
	return "CASE WHEN " + t.Locked.Name + " >= " + mark + " THEN " + s.SecondsNow() + " + 1 ELSE " + t.Due.Seconds() +
		" END"
}
