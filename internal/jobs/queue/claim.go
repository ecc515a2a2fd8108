package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

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

func (c *claim) run(ctx context.Context) error {
	if err := c.s.resolve(ctx); err != nil {
		return err
	}
	if err := c.deferred(ctx); err != nil {
		return err
	}
	seenEmpty, err := c.queues(ctx, c.r.Queues, c.s.seenEmpty)
	if err == nil && len(c.taken) == 0 { // a claim finds nothing only after a look everywhere
		_, err = c.queues(ctx, seenEmpty, func(string) bool { return false })
	}
	if err != nil {
		return err
	}
	if c.r.Whole && len(c.taken) == 0 && !c.unseen {
		return c.whole(ctx)
	}
	return nil
}

// queues claims from queues in their order, and returns those that it left out
// because they were seen empty a moment ago.
func (c *claim) queues(ctx context.Context, queues []string, leaveOut func(string) bool) (leftOut []string, err error) {
	for _, queue := range queues {
		if c.full() {
			return leftOut, nil
		}
		if leaveOut(queue) {
			leftOut = append(leftOut, queue)
			continue
		}
		look := emptyLook{c.s.tables.Options.Clock(), c.s.arrivalsIn(queue)}
		was, empty := c.s.emptied[queue]
		c.heard = empty && was.arrivals != look.arrivals
		delete(c.s.emptied, queue)
		before := len(c.taken)
		if err := c.queue(ctx, queue); err != nil {
			return leftOut, err
		}
		if len(c.taken) == before && !c.full() && !c.unseen {
			c.s.noteEmpty(queue, look)
		}
	}
	return leftOut, nil
}

// queue claims from one queue, its classes of priority in order.
func (c *claim) queue(ctx context.Context, queue string) error {
	if c.s.tables.Layout.Name() == tables.Stock {
		return c.claimFrom(ctx, c.s.cursorOf(queue, 0))
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
			if err := c.claimFrom(ctx, c.s.cursorOf(queue, p)); err != nil {
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

// claimFrom claims from one scan cursor: first the rows that fall due now, then
// what a rescan finds below the low-water mark, then the rows above the mark. A job
// that was heard of after a look in vain is above it, and waits for no rescan: the next
// claim begins with one.
func (c *claim) claimFrom(ctx context.Context, l *scanCursor) error {
	if err := c.returnBlock(ctx, l); err != nil {
		return err
	}
	if err := c.claimFallenDue(ctx, l); err != nil {
		return err
	}
	end, due := l.rescanBound(c.s.tables.Options.Clock())
	heard, before := c.heard && len(l.fromHead.rows) == 0, len(c.taken)
	if heard {
		if err := c.claimHeard(ctx, l); err != nil || len(c.taken) > before {
			return err
		}
	}
	if whole, err := c.rescan(ctx, l, end, due); err != nil || whole || heard && l.exhausted {
		return err
	}
	if x := c.takePrefetched(&l.fromHead); len(x.rows) > 0 {
		if _, err := c.advance(ctx, l, x); err != nil || c.want() <= 0 {
			return err
		}
	}
	return c.claimBlocks(ctx, l)
}

// claimHeard claims a job that was heard of after a look in vain.
func (c *claim) claimHeard(ctx context.Context, l *scanCursor) error {
	before := len(c.taken)
	if err := c.claimSent(ctx, l); err != nil || len(c.taken) > before {
		return err
	}
	return c.claimBlocks(ctx, l)
}

// claimBlocks takes blocks until the claim has what it wants, or nothing is behind
// the cursor.
func (c *claim) claimBlocks(ctx context.Context, l *scanCursor) error {
	for !c.full() {
		before := len(c.taken)
		x, more, err := c.nextBlock(ctx, l)
		if err != nil {
			return err
		}
		l.last, c.beaten = !more, false
		passed, err := c.advance(ctx, l, x)
		if err != nil {
			return err
		}
		l.headPage.read(len(c.taken) > before || len(x.rows) == 0 || c.beaten)
		was := l.exhausted
		if l.exhausted = passed == len(x.rows) && !more; l.exhausted {
			if !was || len(x.rows) > 0 {
				l.exhaustedAt = c.s.tables.Options.Clock()
			}
			return nil
		}
	}
	return nil
}

// advance takes what it can of a block and keeps the rest for the next claim.
func (c *claim) advance(ctx context.Context, l *scanCursor, x prefetched) (passed int, err error) {
	passed, err = c.process(ctx, l.queue, x.rows, x.now)
	if err != nil {
		return passed, err
	}
	if len(c.absorbed) == 0 { // else some of the rest may be duplicates, which are taken
		l.fromHead = x.without(passed)
	}
	return passed, nil
}

// expired takes jobs of an extended table whose worker let its lease run out.
func (c *claim) expired(ctx context.Context, queue string) error {
	k := c.s.classesOf(queue)
	if k.lost == 0 && c.s.tables.Options.Clock().Before(k.expired) {
		return nil
	}
	for !c.full() {
		x, more, err := c.page(ctx, c.s.tables.DB, &k.lostPage, max(c.want(), smallPage),
			func(limit int) tables.CandidateQuery {
				where := fmt.Sprintf("queue = ? AND id > %d AND ", k.lost) +
					c.s.tables.Layout.Expired(c.s.tables.SecondsNow(), c.s.tables.RetryAfter)
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

// deferred tries the jobs that an earlier claim left because their type was at
// its limit, so that they need not be found again.
func (c *claim) deferred(ctx context.Context) error {
	for jobType, waiting := range c.s.deferred {
		entry, ok := c.s.tables.Options.Registry.Lookup(jobType)
		if !ok || c.want() <= 0 {
			continue
		}
		if free, err := c.free(ctx, jobType, entry.Policy); err != nil {
			return err
		} else if !free {
			continue
		}
		delete(c.s.deferred, jobType)
		for _, queue := range c.r.Queues {
			in, args := c.s.tables.Dialect.In("id", waiting)
			l := tables.CandidateQuery{Where: "queue = ? AND " + in + " AND " + c.s.tables.Layout.Waiting(),
				Args: append([]any{queue}, args...), Order: c.s.tables.OrderBy(), Limit: len(waiting)}
			found, now, err := c.s.tables.ReadCandidates(ctx, c.s.tables.DB, l)
			if err != nil {
				return err
			}
			if _, err := c.process(ctx, queue, found, now); err != nil {
				return err
			}
		}
	}
	return nil
}
