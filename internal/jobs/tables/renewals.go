package tables

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Renewals extends leases. A renewal that got no answer may have been written, and
// several may fail in a row: until a later one is confirmed, each value that they
// may have written counts as the lease. It is safe for concurrent use.
type Renewals struct {
	tables *Tables

	mu    sync.Mutex        // never held while the database is asked
	tried map[int64][]int64 // what unanswered renewals may have written, by row
}

// NewRenewals is for the leases of one store on the tables.
func NewRenewals(t *Tables) *Renewals { return &Renewals{tables: t, tried: map[int64][]int64{}} }

// Renew writes leases that end a length from now, by the database's clock, where
// PHP's worker looks, so that it keeps off too. The answer has the zero Lease for
// each that is lost. besides, which may be nil, writes what must last as long,
// until a second of the database's clock.
func (r *Renewals) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration,
	besides func(expires int64) error) ([]jobs.Lease, error) {
	r.tables.SetLeaseLength(length)
	now, err := r.tables.ReadClock(ctx, r.tables.DB)
	if err != nil {
		return nil, fmt.Errorf("renewing leases: %w", err)
	}
	until := r.tables.LeaseMark(now, int64(length.Seconds()))
	held := map[jobs.Lease]bool{}
	var written []jobs.Lease
	for _, g := range r.ByGuard(leases) {
		err := r.renew(ctx, g, until, held)
		if err == nil || database.Classify(err).Unclear() {
			written = append(written, g.leases...)
		}
		if err != nil {
			r.note(written, until)
			return nil, fmt.Errorf("renewing leases: %w", err)
		}
	}
	if besides != nil {
		if err := besides(now + int64(length.Seconds())); err != nil {
			r.note(leases, until)
			return nil, err
		}
	}
	renewed := make([]jobs.Lease, len(leases))
	for i, l := range leases {
		r.Forget(l.ID)
		if held[l] {
			l.ReservedAt = until
			renewed[i] = l
		}
	}
	return renewed, nil
}

// Held asks whether a row still has its lease. MariaDB may answer a DELETE that somebody
// ends by KILL QUERY with no rows and no error: that a lease is lost is said only of a
// row that was looked at.
func (r *Renewals) Held(ctx context.Context, l jobs.Lease) (bool, error) {
	t, id := r.tables, int64(0)
	cond, args := t.Layout.Guard(l, r.Tried(l.ID))
	held, err := t.QueryRow(ctx, t.DB, []any{&id}, fmt.Sprintf("SELECT id FROM %s WHERE id = %d AND %s",
		t.Layout.Table().Name, l.ID, cond), args...)
	if err != nil {
		return false, fmt.Errorf("asking whether a lease is lost: %w", err)
	}
	return held, nil
}

// Tried are the values that unanswered renewals of a row may have written.
func (r *Renewals) Tried(id int64) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tried[id])
}

// Unanswered says that there is something to forget.
func (r *Renewals) Unanswered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tried) > 0
}

// Forget ends what is known of rows: their leases are renewed, or over.
func (r *Renewals) Forget(ids ...int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.tried, id)
	}
}

func (r *Renewals) note(leases []jobs.Lease, until int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range leases {
		if !slices.Contains(r.tried[l.ID], until) {
			r.tried[l.ID] = append(r.tried[l.ID], until)
		}
	}
}

// GuardedLeases are rows, in order, whose leases share the condition under which
// they may be changed.
type GuardedLeases struct {
	Cond string
	Args []any
	IDs  []int64

	leases []jobs.Lease
}

// maxGuarded is how many rows one statement changes under one condition.
const maxGuarded = 1000

// ByGuard sorts leases by their condition.
func (r *Renewals) ByGuard(leases []jobs.Lease) []*GuardedLeases {
	groups := map[string]*GuardedLeases{}
	var list []*GuardedLeases
	for _, l := range leases {
		cond, args := r.tables.Layout.Guard(l, r.Tried(l.ID))
		key := fmt.Sprint(cond, args)
		if groups[key] == nil || len(groups[key].IDs) >= maxGuarded {
			groups[key] = &GuardedLeases{Cond: cond, Args: args}
			list = append(list, groups[key])
		}
		groups[key].IDs, groups[key].leases = append(groups[key].IDs, l.ID), append(groups[key].leases, l)
	}
	for _, g := range list {
		slices.Sort(g.IDs)
	}
	return list
}

// renew extends the leases of one group. Where some are lost, it asks which are not.
func (r *Renewals) renew(ctx context.Context, g *GuardedLeases, until int64, held map[jobs.Lease]bool) error {
	t := r.tables
	in, inArgs := t.Dialect.In("id", g.IDs)
	var n int64
	err := t.InTx(ctx, "extending", func(tx Transaction) (err error) {
		n, err = t.Exec(ctx, tx.Main, "UPDATE "+t.Layout.Table().Name+" SET "+t.Layout.Renew(until)+" WHERE "+in+
			" AND "+g.Cond, slices.Concat(inArgs, g.Args)...)
		return err
	})
	if err != nil {
		return err
	}
	if n == int64(len(g.IDs)) {
		for _, l := range g.leases {
			held[l] = true
		}
		return nil
	}
	after := g.leases[0]
	after.ReservedAt = until
	cond, args := t.Layout.Guard(after, nil)
	still := map[int64]bool{}
	err = t.Query(ctx, t.DB, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		still[id] = true
		return err
	}, "SELECT id FROM "+t.Layout.Table().Name+" WHERE "+in+" AND "+cond, slices.Concat(inArgs, args)...)
	for _, l := range g.leases {
		held[l] = still[l.ID]
	}
	return err
}

// ReleasedDue is when a row of a stock table is due again that is released
// uncounted: as before, but not in the second in which its lease was written.
// The next claim, which raises attempts to the same number, then writes another
// lease, and what the present holder may still have on its way changes nothing.
func (s *Tables) ReleasedDue() string {
	t := s.Layout.Table()
	mark := t.Locked.FromExpr(fmt.Sprintf("%s + %d", s.SecondsNow(), s.LeaseMark(0, int64(s.LeaseLength().Seconds()))))
	return "CASE WHEN " + t.Locked.Name + " >= " + mark + " THEN " + s.SecondsNow() + " + 1 ELSE " + t.Due.Seconds() +
		" END"
}
