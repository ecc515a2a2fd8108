package queue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Renew implements jobs.Source. The renewed lease is written where PHP's
// worker looks, so it keeps off too.
func (s *Store) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	s.tables.SetLeaseLength(length)
	renewed, err := s.renewAll(ctx, leases, length)
	return renewed, s.tables.NoteTrouble(err)
}

func (s *Store) renewAll(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	now, err := s.tables.ReadClock(ctx, s.tables.DB)
	if err != nil {
		return nil, fmt.Errorf("renewing leases: %w", err)
	}
	until := s.tables.LeaseMark(now, int64(length.Seconds()))
	held := map[jobs.Lease]bool{}
	var written []jobs.Lease
	for _, batch := range s.byGuard(leases, until) {
		err := s.renew(ctx, batch, until, held)
		if err == nil || database.Classify(err) == database.Unknown {
			written = append(written, batch.leases...)
		}
		if err != nil {
			s.noteTried(written, until)
			return nil, fmt.Errorf("renewing leases: %w", err)
		}
	}
	if err := s.renewPermits(ctx, leases, now+int64(length.Seconds())); err != nil {
		s.noteTried(leases, until)
		return nil, err
	}
	renewed := make([]jobs.Lease, len(leases))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range leases {
		delete(s.tried, l.ID)
		if held[l] {
			l.ReservedAt = until
			renewed[i] = l
		}
	}
	return renewed, nil
}

// noteTried remembers what a renewal may have written that was not answered, or
// not as a whole. Until a later one is confirmed, each such value counts as the
// lease: several may fail in a row, and the row holds what the last one wrote
// that arrived.
func (s *Store) noteTried(leases []jobs.Lease, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		if !slices.Contains(s.tried[l.ID], until) {
			s.tried[l.ID] = append(s.tried[l.ID], until)
		}
	}
}

// guardedLeases are leases that share their condition.
type guardedLeases struct {
	before     string // holds before the renewal
	after      string // holds when it was done
	args, done []any
	ids        []int64
	leases     []jobs.Lease
}

func (s *Store) byGuard(leases []jobs.Lease, until int64) []*guardedLeases {
	groups := map[string]*guardedLeases{}
	var list []*guardedLeases
	for _, l := range leases {
		original := l
		cond, args := s.tables.Layout.Guard(l, s.triedRenewals(l.ID))
		key := fmt.Sprint(cond, args)
		if groups[key] == nil || len(groups[key].ids) >= 1000 {
			l.ReservedAt = until
			after, done := s.tables.Layout.Guard(l, nil)
			groups[key] = &guardedLeases{before: cond, after: after, args: args, done: done}
			list = append(list, groups[key])
		}
		groups[key].ids = append(groups[key].ids, l.ID)
		groups[key].leases = append(groups[key].leases, original)
	}
	return list
}

// renew extends one group. Where some are lost, it asks which are not.
func (s *Store) renew(ctx context.Context, g *guardedLeases, until int64, held map[jobs.Lease]bool) error {
	slices.Sort(g.ids)
	in, inArgs := s.tables.Dialect.In("id", g.ids)
	var n int64
	err := s.tables.InTx(ctx, "extending", func(t tables.Transaction) (err error) {
		n, err = s.tables.Exec(ctx, t.Main, "UPDATE "+s.tables.Layout.Table().Name+" SET "+
			s.tables.Layout.Renew(until)+" WHERE "+in+" AND "+g.before, slices.Concat(inArgs, g.args)...)
		return err
	})
	if err != nil {
		return err
	}
	if n == int64(len(g.ids)) {
		for _, l := range g.leases {
			held[l] = true
		}
		return nil
	}
	still := map[int64]bool{}
	err = s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		still[id] = true
		return err
	}, "SELECT id FROM "+s.tables.Layout.Table().Name+" WHERE "+in+" AND "+g.after, slices.Concat(inArgs, g.done)...)
	for _, l := range g.leases {
		held[l] = still[l.ID]
	}
	return err
}

// renewPermits extends the permits of limited types with their jobs.
func (s *Store) renewPermits(ctx context.Context, leases []jobs.Lease, expires int64) error {
	s.mu.Lock()
	limited := len(s.permits) > 0
	s.mu.Unlock()
	if !limited {
		return nil
	}
	byToken := map[string][]int64{}
	for _, l := range leases {
		token := tables.RandomPart(tables.TokenOf(l))
		byToken[token] = append(byToken[token], l.ID)
	}
	for token, list := range byToken {
		in, args := s.tables.Dialect.In("job_id", list)
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB,
			"UPDATE cmsjobs_permits SET expires_at = ? WHERE token = ? AND "+in,
			append([]any{expires, token}, args...)...); err != nil {
			return fmt.Errorf("renewing permits: %w", err)
		}
	}
	return nil
}
