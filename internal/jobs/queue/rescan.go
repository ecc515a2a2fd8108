package queue

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxRescanPages is how many pages of other programs' rows a rescan reads in one
// claim. The next claim goes on behind them, at once (jobs.ErrUnseen).
const maxRescanPages = 4

// smallPage is how many rows a look reads at least, largePage how many it
// reads while it finds nothing to take. Of a page larger than the claim wants,
// payloads come whole up to wholePayload bytes only: large payloads of foreign
// rows are not held in memory.
const (
	smallPage    = 20
	largePage    = 2000
	wholePayload = 4 << 10
	// claimsAhead is for how many claims like itself a claim reads candidates,
	// maxAhead how many these are at most.
	claimsAhead, maxAhead = 8, 256
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
// payload that was not read whole; where one stands first, the page is small.
func (c *claim) page(
	ctx context.Context, size *pageSize, looking func(limit int) tables.CandidateQuery,
) (x prefetched, more bool, err error) {
	return c.pageOf(ctx, size, max(int(*size), min(claimsAhead*c.want(), maxAhead)), looking)
}

// pageOf reads a page of so many rows, or of as many as the claim wants.
func (c *claim) pageOf(
	ctx context.Context, size *pageSize, rows int, looking func(limit int) tables.CandidateQuery,
) (x prefetched, more bool, err error) {
	least := max(c.want(), smallPage)
	l := looking(max(least, rows))
	if l.Limit > least {
		l.Whole = wholePayload
	}
	x.read = c.s.tables.Options.Clock()
	if x.rows, x.now, err = c.s.tables.ReadCandidates(ctx, c.s.tables.DB, l); err != nil {
		return x, false, err
	}
	if l.Whole == 0 {
		return x, len(x.rows) == l.Limit, nil
	}
	for i, row := range x.rows {
		if row.Size > wholePayload && row.Size <= tables.Oversize {
			if *size = 0; i == 0 {
				return c.pageOf(ctx, size, 0, looking)
			}
			x.rows = x.rows[:i]
			return x, true, nil
		}
	}
	return x, len(x.rows) == l.Limit, nil
}

// rescan looks for rows that appeared below the low-water mark. whole says that
// the rescan saw every row, so that a look above the mark is not needed.
func (c *claim) rescan(ctx context.Context, l *scanCursor) (whole bool, err error) {
	if !l.rescanning {
		if c.s.tables.Options.Clock().Before(l.next) || (l.lowWater == tables.RowPosition{} && !l.exhausted) {
			return false, nil
		}
		l.beginRescan(l.lowWater)
		if l.exhausted {
			l.rescanEnd = tables.RowPosition{}
		}
	}
	for range maxRescanPages {
		done, err := c.rescanNext(ctx, l)
		if err != nil || done {
			return done && l.rescanEnd == tables.RowPosition{}, err
		}
		if c.want() <= 0 || c.stopped {
			return false, nil
		}
	}
	l.long, c.unseen = true, true
	return false, nil
}

func (l *scanCursor) beginRescan(end tables.RowPosition) {
	l.rescanning, l.rescan, l.rescanEnd, l.cost, l.pages, l.rescanPage, l.fromRescan = true, tables.RowPosition{}, end,
		0, 0, 0, prefetched{}
}

// rescanNext reads the next page of a rescan, and says when it was the last.
func (c *claim) rescanNext(ctx context.Context, l *scanCursor) (done bool, err error) {
	state := c.s.tables.Layout.Waiting()
	if c.s.tables.Layout.Name() == tables.Stock { // an extended table has an index for lost leases: see expired
		state = "(" + state + " OR " + c.s.tables.Layout.Expired(c.s.tables.SecondsNow(), c.s.tables.RetryAfter) + ")"
	}
	x := c.takePrefetched(&l.fromRescan)
	more := len(x.rows) > 0
	if !more {
		begun := c.s.tables.Options.Clock()
		if x, more, err = c.page(ctx, &l.rescanPage, func(limit int) tables.CandidateQuery {
			return c.s.between(l, l.rescan, l.rescanEnd, state, limit)
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
	l.rescanPage.read(len(c.taken) > before)
	if passed > 0 {
		l.rescan = tables.RowPosition{At: x.rows[passed-1].At, ID: x.rows[passed-1].ID}
	}
	if passed < len(x.rows) || more {
		if len(c.absorbed) == 0 {
			l.fromRescan = x.without(passed)
		}
		return false, nil // goes on with the next page, or the next claim
	}
	l.rescanning, l.long = false, l.pages > maxRescanPages
	l.next = c.s.tables.Options.Clock().Add(max(rescanShare*l.cost, rescanInterval))
	return true, nil
}

// whole looks at every row of the claim's queues once more, from the start: it is
// for a worker that ends when there is nothing to do, as no later claim follows.
func (c *claim) whole(ctx context.Context) error {
	var cursors []*scanCursor
	for _, queue := range c.r.Queues {
		found, err := c.cursorsOf(ctx, queue)
		if err != nil {
			return err
		}
		cursors = append(cursors, found...)
	}
	for _, l := range cursors {
		if l.looked {
			continue
		}
		if !l.looking {
			l.looking = true
			l.beginRescan(tables.RowPosition{})
		}
		for l.rescanning && !c.full() {
			if _, err := c.rescanNext(ctx, l); err != nil {
				return err
			}
		}
		if l.rescanning || len(c.taken) > 0 {
			return nil
		}
		l.looking, l.looked = false, true
	}
	for _, l := range cursors {
		l.looked = false // the next one begins again
	}
	return nil
}

// cursorsOf are all scan cursors of a queue.
func (c *claim) cursorsOf(ctx context.Context, queue string) ([]*scanCursor, error) {
	if c.s.tables.Layout.Name() == tables.Stock {
		return []*scanCursor{c.s.cursorOf(queue, 0)}, nil
	}
	priorities, _, err := c.s.waitingClasses(ctx, queue, true)
	cursors := make([]*scanCursor, len(priorities))
	for i, p := range priorities {
		cursors[i] = c.s.cursorOf(queue, p)
	}
	return cursors, err
}
