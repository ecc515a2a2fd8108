package queue

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// smallPage is how many rows a look reads at least, largePage how many it
// reads while it meets nothing but other people's rows. Of a page larger than
// the claim wants, payloads come whole up to skimmed bytes only: a page of
// large payloads is not held in memory for rows that nobody here runs.
const (
	smallPage = 20
	largePage = 2000
	skimmed   = 4 << 10
)

// read makes the next page larger where this one held nothing to take.
func (p *pageSize) read(took bool) {
	if took {
		*p = 0
		return
	}
	*p = min(5*max(*p, smallPage), largePage)
}

// page reads a page; more says that rows may stand behind it. It ends before a
// payload that was not read whole; one that stands first makes the page small.
func (c *claim) page(
	ctx context.Context, size *pageSize, looking func(limit int) tables.CandidateQuery,
) (x prefetched, more bool, err error) {
	least := max(c.want(), smallPage)
	l := looking(max(least, int(*size)))
	if l.Limit > least {
		l.Whole = skimmed
	}
	x.read = c.s.tables.Options.Clock()
	if x.rows, x.now, err = c.s.tables.ReadCandidates(ctx, c.s.tables.DB, l); err != nil {
		return x, false, err
	}
	if l.Whole == 0 {
		return x, len(x.rows) == l.Limit, nil
	}
	for i, row := range x.rows {
		if row.Size > skimmed && row.Size <= tables.Oversize {
			if *size = 0; i == 0 {
				return c.page(ctx, size, looking)
			}
			x.rows = x.rows[:i]
			return x, true, nil
		}
	}
	return x, len(x.rows) == l.Limit, nil
}

// rescan looks for what appeared below the lane's floor. whole says that the
// sweep saw the whole lane, so that there is no need to look at its head.
func (c *claim) rescan(ctx context.Context, l *scanCursor) (whole bool, err error) {
	if !l.rescanning {
		if c.s.tables.Options.Clock().Before(l.next) || (l.lowWater == tables.RowPosition{} && !l.exhausted) {
			return false, nil
		}
		l.beginSweep(l.lowWater)
		if l.exhausted {
			l.rescanEnd = tables.RowPosition{}
		}
	}
	for range sweepPages {
		done, err := c.sweepOn(ctx, l)
		if err != nil || done {
			return done && l.rescanEnd == tables.RowPosition{}, err
		}
		if c.want() <= 0 {
			return false, nil
		}
	}
	l.long, c.unseen = true, true
	return false, nil
}

func (l *scanCursor) beginSweep(end tables.RowPosition) {
	l.rescanning, l.rescan, l.rescanEnd, l.cost, l.pages, l.sweepPage, l.fromRescan = true, tables.RowPosition{}, end, 0, 0, 0, prefetched{}
}

// sweepOn reads the next page of a sweep, and says when it was the last.
func (c *claim) sweepOn(ctx context.Context, l *scanCursor) (done bool, err error) {
	state := c.s.tables.Layout.Waiting()
	if c.s.tables.Layout.Name() == tables.Stock { // an extended table has an index for lost leases: see expired
		state = "(" + state + " OR " + c.s.tables.Layout.Expired(c.s.tables.SecondsNow(), c.s.tables.RetryAfter) + ")"
	}
	x := c.takePrefetched(&l.fromRescan)
	more := len(x.rows) > 0
	if !more {
		begun := c.s.tables.Options.Clock()
		if x, more, err = c.page(ctx, &l.sweepPage, func(limit int) tables.CandidateQuery {
			return c.s.inLane(l, l.rescan, l.rescanEnd, state, limit)
		}); err != nil {
			return false, err
		}
		l.cost += c.s.tables.Options.Clock().Sub(begun)
		l.pages++
	}
	before := len(c.taken)
	passed, err := c.process(ctx, l.queue, x.rows, x.now)
	if err != nil {
		return false, err
	}
	l.sweepPage.read(len(c.taken) > before)
	if passed > 0 {
		l.rescan = tables.RowPosition{At: x.rows[passed-1].At, ID: x.rows[passed-1].ID}
	}
	if passed < len(x.rows) || more {
		if len(c.absorbed) == 0 {
			l.fromRescan = x.without(passed)
		}
		return false, nil // goes on with the next page, or the next claim
	}
	l.rescanning, l.long = false, l.pages > sweepPages
	l.next = c.s.tables.Options.Clock().Add(max(rescanShare*l.cost, rescanInterval))
	return true, nil
}

// whole looks at every row of the claim's queues once more, from the start:
// nobody looks again after a worker that ends when there is nothing to do.
func (c *claim) whole(ctx context.Context) error {
	var lanes []*scanCursor
	for _, queue := range c.r.Queues {
		found, err := c.lanesOf(ctx, queue)
		if err != nil {
			return err
		}
		lanes = append(lanes, found...)
	}
	for _, l := range lanes {
		if l.looked {
			continue
		}
		if !l.looking {
			l.looking = true
			l.beginSweep(tables.RowPosition{})
		}
		for l.rescanning && !c.full() {
			if _, err := c.sweepOn(ctx, l); err != nil {
				return err
			}
		}
		if l.rescanning || len(c.taken) > 0 {
			return nil
		}
		l.looking, l.looked = false, true
	}
	for _, l := range lanes {
		l.looked = false // this look is over
	}
	return nil
}

// lanesOf are all lanes of a queue.
func (c *claim) lanesOf(ctx context.Context, queue string) ([]*scanCursor, error) {
	if c.s.tables.Layout.Name() == tables.Stock {
		return []*scanCursor{c.s.lane(queue, 0)}, nil
	}
	priorities, _, err := c.s.waitingClasses(ctx, queue, true)
	lanes := make([]*scanCursor, len(priorities))
	for i, p := range priorities {
		lanes[i] = c.s.lane(queue, p)
	}
	return lanes, err
}
