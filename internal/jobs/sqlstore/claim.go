package sqlstore

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxPages bounds how many pages of other people's rows one claim steps over;
// the next claim goes on behind them.
const maxPages = 20

// claim is one call of Claim.
type claim struct {
	s     *Store
	r     jobs.ClaimRequest
	token string
	free  map[string]int // places that a limited kind has left, read once
	taken []jobs.Claimed
	pages int
	stood map[int64]bool // rows that were taken as twins
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
	s.leasesLast(r.Lease)
	c := s.newClaim(r)
	err := s.noted(c.run(ctx))
	if len(c.taken) > 0 {
		// What was taken is committed and must reach the worker; the error, if it
		// lasts, comes back with the next claim.
		return c.taken, nil
	}
	return nil, err
}

func (s *Store) newClaim(r jobs.ClaimRequest) *claim {
	return &claim{s: s, r: r, token: newToken(r.Worker), free: map[string]int{}, stood: map[int64]bool{}}
}

func (c *claim) want() int { return c.r.Limit - len(c.taken) }

func (c *claim) run(ctx context.Context) error {
	if err := c.s.resolve(ctx); err != nil {
		return err
	}
	if err := c.heldBack(ctx); err != nil {
		return err
	}
	for _, queue := range c.r.Queues {
		if c.want() <= 0 || c.pages >= maxPages {
			return nil
		}
		if err := c.queue(ctx, queue); err != nil {
			return err
		}
	}
	return nil
}

// queue claims from one queue, its classes of priority in order.
func (c *claim) queue(ctx context.Context, queue string) error {
	if c.s.t.kind() == Stock {
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

// lane claims from one lane: first what a sweep finds below the floor, then at
// the head.
func (c *claim) lane(ctx context.Context, l *lane) error {
	whole, err := c.sweep(ctx, l)
	if err != nil || whole {
		return err
	}
	if x := c.leftover(&l.ahead); len(x.rows) > 0 {
		if _, err := c.advance(ctx, l, x); err != nil || c.want() <= 0 {
			return err
		}
	}
	end, err := c.s.lastID(ctx, l)
	if err != nil {
		return err
	}
	for c.want() > 0 && c.pages < maxPages {
		limit, asked := c.pageSize(), c.s.o.Clock()
		found, now, err := c.s.read(ctx, c.s.db, c.s.inLane(l, l.head, end, c.s.t.waiting(), limit))
		if err != nil {
			return err
		}
		passed, err := c.advance(ctx, l, spare{found, now, asked})
		if err != nil {
			return err
		}
		if l.atEnd = passed == len(found) && len(found) < limit; l.atEnd {
			l.head.id = max(l.head.id, end.id) // by id: delayed rows are below the floor now
			return nil
		}
	}
	return nil
}

// advance takes what it can of rows from the lane's head, moves the head past
// what it is done with and keeps the rest for the next claim.
func (c *claim) advance(ctx context.Context, l *lane, x spare) (passed int, err error) {
	passed, err = c.process(ctx, l.queue, x.rows, x.now)
	if err != nil {
		return passed, err
	}
	if passed > 0 {
		l.head = position{x.rows[passed-1].at, x.rows[passed-1].id}
	}
	if len(c.stood) == 0 { // else some of the rest may be twins, which are taken
		l.ahead = x.without(passed)
	}
	return passed, nil
}

// sweep looks for what appeared below the lane's floor. whole says that the
// sweep saw the whole lane, so that there is no need to look at its head.
func (c *claim) sweep(ctx context.Context, l *lane) (whole bool, err error) {
	if !l.sweeping {
		if c.s.o.Clock().Before(l.next) || (l.head == position{} && !l.atEnd) {
			return false, nil
		}
		l.sweeping, l.sweep, l.sweepEnd, l.cost = true, position{}, l.head, 0
		if l.atEnd {
			l.sweepEnd = position{}
		}
	}
	state := c.s.t.waiting()
	if c.s.t.kind() == Stock { // an extended table has an index for lost leases: see expired
		state = "(" + state + " OR " + c.s.t.expired(c.s.now(), c.s.retryAfter) + ")"
	}
	x, limit := c.leftover(&l.below), c.pageSize()
	more := len(x.rows) > 0
	if !more {
		x.read = c.s.o.Clock()
		if x.rows, x.now, err = c.s.read(ctx, c.s.db, c.s.inLane(l, l.sweep, l.sweepEnd, state, limit)); err != nil {
			return false, err
		}
		l.cost += c.s.o.Clock().Sub(x.read)
		more = len(x.rows) == limit
	}
	passed, err := c.process(ctx, l.queue, x.rows, x.now)
	if err != nil {
		return false, err
	}
	if passed > 0 {
		l.sweep = position{x.rows[passed-1].at, x.rows[passed-1].id}
	}
	if passed < len(x.rows) || more {
		if len(c.stood) == 0 {
			l.below = x.without(passed)
		}
		return false, nil // goes on with the next claim
	}
	l.sweeping = false
	l.next = c.s.o.Clock().Add(max(sweepShare*l.cost, sweepRest))
	return l.sweepEnd == position{}, nil
}

// pageSize is how many candidates one read asks for.
func (c *claim) pageSize() int { return max(c.want(), 20) }

// lastID is the newest row of a queue, read where the order is by id: what the
// claim saw as not due up to there need not be seen again by the next.
func (s *Store) lastID(ctx context.Context, l *lane) (position, error) {
	if s.byTime() {
		return position{}, nil
	}
	var p position
	_, err := s.one(ctx, s.db, []any{&p.id}, "SELECT COALESCE(MAX(id), 0) FROM "+s.t.shape().name+" WHERE queue = ?", l.queue)
	if p.id == 0 {
		p.id = -1 // an empty queue: nothing is up to here
	}
	return p, err
}

// expired takes jobs of an extended table whose worker let its lease run out.
func (c *claim) expired(ctx context.Context, queue string) error {
	k := c.s.classesOf(queue)
	if c.s.o.Clock().Before(k.expired) {
		return nil
	}
	l := look{where: "queue = ? AND " + c.s.t.expired(c.s.now(), c.s.retryAfter), args: []any{queue}, order: " ORDER BY id", limit: c.pageSize()}
	found, now, err := c.s.read(ctx, c.s.db, l)
	if err != nil {
		return err
	}
	passed, err := c.process(ctx, queue, found, now)
	if err == nil && passed == len(found) && len(found) < l.limit {
		k.expired = c.s.o.Clock().Add(min(c.r.Lease/4, 5*time.Second))
	}
	return err
}

// process goes through candidates in their order, takes what can run here, and
// says how many it is done with.
func (c *claim) process(ctx context.Context, queue string, found []*candidate, now int64) (passed int, err error) {
	c.pages++
	rescues := c.rescues(ctx)
	for passed < len(found) && c.want() > 0 {
		var chosen []*candidate
		leaders := map[string]*candidate{} // of coalescing kinds, by work
		start := passed
		for ; passed < len(found) && len(chosen) < c.want(); passed++ {
			x := found[passed]
			x.twins = nil // of an earlier try
			if c.stood[x.id] || !c.s.ours(queue, x) {
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
			if x.policy.Coalesce && x.fault == nil {
				work := x.sameWork()
				if leader, twin := leaders[work]; twin {
					leader.twins = append(leader.twins, x)
					continue
				}
				leaders[work] = x
			}
			chosen = append(chosen, x)
		}
		for _, leader := range leaders {
			if err := c.s.addTwins(ctx, queue, leader); err != nil {
				return start, err
			}
		}
		if len(chosen) == 0 {
			return passed, nil
		}
		taken, err := c.s.take(ctx, c, chosen, now)
		if err != nil {
			return start, err
		}
		c.taken = append(c.taken, taken...)
	}
	return passed, nil
}
