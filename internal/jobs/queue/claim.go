package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxPages bounds how many pages of other people's rows one claim steps over,
// and sweepPages how many of them a sweep may read; the next claim goes on
// behind them, at once (jobs.ErrUnseen).
const (
	maxPages   = 20
	sweepPages = 4
)

// claim is one call of Claim.
type claim struct {
	s        *Store
	r        jobs.ClaimRequest
	token    string
	free     map[string]int // places that a limited type has left, read once
	taken    []jobs.Claimed
	pages    int
	absorbed map[int64]bool // rows that were taken as twins
	// unseen says that the claim ended at its bounds before it saw all rows.
	unseen bool
}

// Claim implements jobs.Source. One claim is made at a time in a process: one
// claimer that takes many rows is faster than many that take the same ones.
func (s *Store) Claim(ctx context.Context, r jobs.ClaimRequest) ([]jobs.Claimed, error) {
	if r.Limit <= 0 {
		return nil, nil
	}
	select {
	case s.claiming <- struct{}{}:
		defer func() { <-s.claiming }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.tables.SetLeaseLength(r.Lease)
	c := s.newClaim(r)
	err := s.tables.NoteTrouble(c.run(ctx))
	if len(c.taken) > 0 {
		// What was taken is committed and must reach the worker; the error, if it
		// lasts, comes back with the next claim.
		return c.taken, nil
	}
	if err == nil && c.unseen {
		err = jobs.ErrUnseen
	}
	return nil, err
}

func (s *Store) newClaim(r jobs.ClaimRequest) *claim {
	return &claim{s: s, r: r, token: tables.NewToken(r.Worker), free: map[string]int{}, absorbed: map[int64]bool{}}
}

func (c *claim) want() int { return c.r.Limit - len(c.taken) }

func (c *claim) run(ctx context.Context) error {
	if err := c.s.resolve(ctx); err != nil {
		return err
	}
	if err := c.deferred(ctx); err != nil {
		return err
	}
	for _, queue := range c.r.Queues {
		if c.full() {
			return nil
		}
		if err := c.queue(ctx, queue); err != nil {
			return err
		}
	}
	if c.r.Whole && len(c.taken) == 0 && !c.unseen {
		return c.whole(ctx)
	}
	return nil
}

// full says that the claim has what it wants, or is at its bounds.
func (c *claim) full() bool {
	if c.want() <= 0 {
		return true
	}
	if c.pages >= maxPages {
		c.unseen = true
		return true
	}
	return false
}

// queue claims from one queue, its classes of priority in order.
func (c *claim) queue(ctx context.Context, queue string) error {
	if c.s.tables.Layout.Name() == tables.Stock {
		return c.lane(ctx, c.s.lane(queue, 0))
	}
	if err := c.expired(ctx, queue); err != nil {
		return err
	}
	before := len(c.taken)
	for _, again := range []bool{false, true} {
		priorities, fresh, err := c.s.waitingClasses(ctx, queue, again)
		if err != nil {
			return err
		}
		for _, p := range priorities {
			if c.want() <= 0 {
				return nil
			}
			if err := c.lane(ctx, c.s.lane(queue, p)); err != nil {
				return err
			}
		}
		// Nothing in the classes that were known: a new one may have come.
		if fresh || len(c.taken) > before {
			return nil
		}
	}
	return nil
}

// lane claims from one lane: first rows that fall due now, then what a sweep
// finds below the floor, then at the head.
func (c *claim) lane(ctx context.Context, l *scanCursor) error {
	if err := c.fallenDue(ctx, l); err != nil {
		return err
	}
	whole, err := c.rescan(ctx, l)
	if err != nil || whole {
		return err
	}
	if x := c.takePrefetched(&l.fromHead); len(x.rows) > 0 {
		if _, err := c.advance(ctx, l, x); err != nil || c.want() <= 0 {
			return err
		}
	}
	end, err := c.s.lastID(ctx, l)
	if err != nil {
		return err
	}
	for !c.full() {
		x, more, err := c.page(ctx, &l.headPage, func(limit int) tables.CandidateQuery {
			return c.s.inLane(l, l.lowWater, end, c.s.tables.Layout.Waiting(), limit)
		})
		if err != nil {
			return err
		}
		before := len(c.taken)
		passed, err := c.advance(ctx, l, x)
		if err != nil {
			return err
		}
		l.headPage.read(len(c.taken) > before)
		if l.exhausted = passed == len(x.rows) && !more; l.exhausted {
			l.lowWater.ID = max(l.lowWater.ID, end.ID) // by id: delayed rows are below the floor now
			return nil
		}
	}
	return nil
}

// advance takes what it can of rows from the lane's head, moves the head past
// what it is done with and keeps the rest for the next claim.
func (c *claim) advance(ctx context.Context, l *scanCursor, x prefetched) (passed int, err error) {
	passed, err = c.process(ctx, l.queue, x.rows, x.now)
	if err != nil {
		return passed, err
	}
	if passed > 0 {
		l.lowWater = tables.RowPosition{At: x.rows[passed-1].At, ID: x.rows[passed-1].ID}
	}
	if len(c.absorbed) == 0 { // else some of the rest may be twins, which are taken
		l.fromHead = x.without(passed)
	}
	return passed, nil
}

// lastID is the newest row of a queue, read where the order is by id: what the
// claim saw as not due up to there need not be seen again by the next.
func (s *Store) lastID(ctx context.Context, l *scanCursor) (tables.RowPosition, error) {
	if s.tables.OrderedByTime() {
		return tables.RowPosition{}, nil
	}
	var p tables.RowPosition
	_, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&p.ID}, "SELECT COALESCE(MAX(id), 0) FROM "+s.tables.Layout.Table().Name+" WHERE queue = ?", l.queue)
	if p.ID == 0 {
		p.ID = -1 // an empty queue: nothing is up to here
	}
	return p, err
}

// expired takes jobs of an extended table whose worker let its lease run out.
func (c *claim) expired(ctx context.Context, queue string) error {
	k := c.s.classesOf(queue)
	if k.lost == 0 && c.s.tables.Options.Clock().Before(k.expired) {
		return nil
	}
	for !c.full() {
		x, more, err := c.page(ctx, &k.lostPage, func(limit int) tables.CandidateQuery {
			where := fmt.Sprintf("queue = ? AND id > %d AND ", k.lost) + c.s.tables.Layout.Expired(c.s.tables.SecondsNow(), c.s.tables.RetryAfter)
			return tables.CandidateQuery{Where: where, Args: []any{queue}, Order: " ORDER BY id", Limit: limit}
		})
		if err != nil {
			return err
		}
		before := len(c.taken)
		passed, err := c.process(ctx, queue, x.rows, x.now)
		if err != nil {
			return err
		}
		k.lostPage.read(len(c.taken) > before)
		if passed > 0 {
			k.lost = x.rows[passed-1].ID
		}
		if passed == len(x.rows) && !more {
			k.lost, k.expired = 0, c.s.tables.Options.Clock().Add(min(c.r.Lease/4, 5*time.Second))
			return nil
		}
	}
	return nil
}

// process goes through candidates in their order, takes what can run here, and
// says how many it is done with.
func (c *claim) process(ctx context.Context, queue string, found []*tables.Candidate, now int64) (passed int, err error) {
	c.pages++
	rescues := c.rescues(ctx)
	for passed < len(found) && c.want() > 0 {
		var chosen []*tables.Candidate
		leaders := map[string]*tables.Candidate{} // of coalescing types, by work
		start := passed
		for ; passed < len(found) && len(chosen) < c.want(); passed++ {
			x := found[passed]
			x.Duplicates = nil // of an earlier try
			if c.absorbed[x.ID] || !c.s.tables.Claimable(queue, x) {
				continue
			}
			if ok, err := rescues(x); err != nil {
				return start, err
			} else if !ok {
				continue
			}
			if ok, err := c.permitted(ctx, queue, x); err != nil {
				return start, err
			} else if !ok {
				continue
			}
			if x.Policy.Coalesce && x.Fault == nil {
				work := x.DedupKey()
				if primary, duplicate := leaders[work]; duplicate {
					primary.Duplicates = append(primary.Duplicates, x)
					continue
				}
				leaders[work] = x
			}
			chosen = append(chosen, x)
		}
		for _, primary := range leaders {
			if err := c.s.addDuplicates(ctx, queue, primary); err != nil {
				return start, err
			}
		}
		if len(chosen) == 0 {
			return passed, nil
		}
		taken, err := c.s.claimRows(ctx, c, chosen, now)
		if err != nil {
			return start, err
		}
		c.taken = append(c.taken, taken...)
	}
	return passed, nil
}

// rescues says of the candidates of one look whether they may be taken as far
// as their leases go. It asks the database once, and only where a lease has run
// out.
func (c *claim) rescues(ctx context.Context) func(*tables.Candidate) (bool, error) {
	asked, may := false, false
	return func(x *tables.Candidate) (bool, error) {
		if !x.Rescued {
			return true, nil
		}
		var err error
		if !asked {
			asked = true
			may, err = c.s.tables.MayRescue(ctx)
		}
		return may, err
	}
}
