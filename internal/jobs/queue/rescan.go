package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxRescanPages is how many pages of other programs' rows a rescan reads in one
// claim. The next claim goes on behind them, at once (jobs.ErrUnseen).
const maxRescanPages = 4

// smallPage is how many rows a look reads at least, largePage how many it
// reads while it finds nothing to take. Of a page larger than the claim has free slots
// for, payloads come whole up to wholePayload bytes only: large payloads of foreign
// rows are not held in memory. Where such a payload stands first, as many rows are read
// again as have at most wholePage bytes together, or as many as have a slot.
const (
	smallPage    = 20
	largePage    = 2000
	wholePayload = 4 << 10
	wholePage    = 1 << 20
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
// payload that was not read whole; where one stands first, it and those behind it are
// read again.
func (c *claim) page(
	ctx context.Context, q tables.Tx, size *pageSize, least int, looking func(limit int) tables.CandidateQuery,
) (x prefetched, more bool, err error) {
	l := looking(max(least, int(*size)))
	if l.Limit > max(c.wantNow(), smallPage) {
		l.Whole = wholePayload
	}
	x.read = c.s.tables.Options.Clock()
	if x.rows, x.now, err = c.s.tables.ReadCandidates(ctx, q, l); err != nil {
		return x, false, err
	}
	cut := slices.IndexFunc(x.rows, func(row *tables.Candidate) bool {
		return l.Whole > 0 && row.Size > wholePayload && row.Size <= tables.Oversize
	})
	if cut < 0 {
		return x, len(x.rows) == l.Limit, nil
	}
	if *size = 0; cut > 0 {
		x.rows = x.rows[:cut]
		return x, true, nil
	}
	l = looking(max(c.wantNow(), rowsWithin(x.rows, wholePage)))
	x.rows, x.now, err = c.s.tables.ReadCandidates(ctx, q, l)
	return x, len(x.rows) == l.Limit, err
}

// rowsWithin is how many of the first rows have at most so many bytes of payload together;
// one at least.
func rowsWithin(rows []*tables.Candidate, bytes int64) (n int) {
	for ; n < len(rows) && bytes >= 0; n++ {
		bytes -= min(rows[n].Size, tables.Oversize)
	}
	if bytes < 0 {
		n--
	}
	return max(n, 1)
}

// rescanBound is up to where a rescan that begins now looks; due says that it may.
func (l *scanCursor) rescanBound(now time.Time) (end tables.RowPosition, due bool) {
	if now.Before(l.next) {
		return end, false
	}
	if l.exhausted && now.Sub(l.exhaustedAt) >= undisturbedAge && now.Sub(l.sightedAt) >= undisturbedAge {
		return end, true
	}
	end = l.undisturbed(now)
	return end, end != tables.RowPosition{}
}

// rescan goes on with a rescan, or begins the one that is due, up to end. whole says
// that it saw every row, so that a look above the low-water mark is not needed.
func (c *claim) rescan(ctx context.Context, l *scanCursor, end tables.RowPosition, due bool) (whole bool, err error) {
	now := c.s.tables.Options.Clock()
	if !l.rescanning {
		if !due {
			return false, nil
		}
		if ours, err := c.isRescanner(ctx, l, now); err != nil || !ours {
			return false, err
		}
		l.beginRescan(end)
	}
	for range maxRescanPages {
		done, err := c.rescanNext(ctx, l)
		if err != nil || done {
			return done && l.rescanEnd == tables.RowPosition{}, err
		}
		if c.want() <= 0 || c.stopped {
			return false, c.endTurn(ctx, l, now)
		}
	}
	l.long, c.unseen = true, true
	return false, nil
}

// rescanTurn is how long a process is the only one that rescans, unless it goes on:
// one look for what appeared before the cursor is enough for the fleet.
const rescanTurn = 3 * time.Second

// cheapRescan is what a rescan may cost that a process makes without asking whose turn
// it is, every rescanTurn: an idle one would do nothing but write that it is its turn.
const cheapRescan = 10 * time.Millisecond

// isRescanner says that it is this process's turn to rescan. It goes on for as long
// as the process claims; after that another one takes over.
func (c *claim) isRescanner(ctx context.Context, l *scanCursor, now time.Time) (bool, error) {
	if now.Before(l.rescansTo) || !l.rescanned.IsZero() && now.Sub(l.rescanned) >= rescanTurn && l.cost <= cheapRescan {
		return true, nil
	}
	s, clock := c.s, c.s.tables.MillisNow()
	// Asked first without a lock: those who only ask must not stand in line with those
	// who move the cursor, which is the same row.
	ours := fmt.Sprintf("(rescanner = ? OR rescan_until <= %s OR rescan_until > %s + %d)", clock, clock,
		2*rescanTurn.Milliseconds())
	var n int64
	_, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&n},
		"SELECT COUNT(*) FROM cmsjobs_cursors WHERE name = ? AND "+ours, l.name, s.name)
	if err == nil && n == 1 {
		n, err = s.tables.Exec(ctx, s.tables.OwnDB, fmt.Sprintf("UPDATE cmsjobs_cursors SET rescanner = ?, "+
			"rescan_until = %s + %d WHERE name = ? AND ", clock, rescanTurn.Milliseconds())+ours,
			s.name, l.name, s.name)
	}
	if err != nil {
		return false, fmt.Errorf("asking whose turn it is to look for jobs that came back: %w", err)
	}
	if n == 1 {
		l.rescansTo = now.Add(rescanTurn / 2)
		return true, nil
	}
	l.next = now.Add(rescanTurn / 2)
	return false, nil
}

// endTurn lets another process rescan where this one leaves jobs that it has no slot
// for.
func (c *claim) endTurn(ctx context.Context, l *scanCursor, now time.Time) error {
	if !now.Before(l.rescansTo) {
		return nil
	}
	l.rescansTo = now
	if _, err := c.s.tables.Exec(ctx, c.s.tables.OwnDB, "UPDATE cmsjobs_cursors SET rescan_until = "+
		c.s.tables.MillisNow()+" WHERE name = ? AND rescanner = ?", l.name, c.s.name); err != nil {
		return fmt.Errorf("letting another process look for jobs that came back: %w", err)
	}
	return nil
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
		if x, more, err = c.page(ctx, c.s.tables.DB, &l.rescanPage, max(c.want(), smallPage),
			func(limit int) tables.CandidateQuery {
				return c.s.between(l, l.rescan, l.rescanEnd, state, limit)
			}); err != nil {
			return false, err
		}
		l.cost += c.s.tables.Options.Clock().Sub(begun)
		l.pages++
		if back, err := c.readAgain(ctx, l, x); err != nil || back {
			return back, err
		}
	}
	before := len(c.taken)
	passed, err := c.process(ctx, l.queue, x.rows, x.now)
	if err == nil && len(c.taken) > before {
		err = c.noteAhead(ctx, l, prefetched{rows: x.rows[:passed], now: x.now})
	}
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
	l.rescanning, l.long, l.rescanned = false, l.pages > maxRescanPages, c.s.tables.Options.Clock()
	l.next = l.rescanned.Add(max(rescanShare*l.cost, rescanInterval))
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
