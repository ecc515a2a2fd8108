package queue

import (
	"context"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// SettleAndClaim implements jobs.SettleClaimer. The next jobs come from what the last
// claim saw beside its own; where that says nothing, the ends alone are written.
func (s *Store) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, r jobs.ClaimRequest) (results []error,
	claimed []jobs.Claimed, err error) {
	if len(ends) > s.tables.MaxBatch {
		results, err = s.Settle(ctx, ends)
		return results, nil, err
	}
	var n *next
	select {
	case s.claiming <- struct{}{}:
		n = s.peekNext(r)
		defer s.lookAhead(ctx, n)()
	default: // another call is claiming
	}
	results = make([]error, len(ends))
	err = s.settle(ctx, s.pendingOf(ends), results, n)
	switch {
	case err != nil && n != nil && database.Classify(err).Unclear():
		s.recordInDoubt(n.claim, n.rows, n.until)
	case n != nil && (err != nil || len(n.won) < len(n.chosen)):
		n.putBack()
	}
	if err != nil {
		return nil, nil, s.tables.NoteTrouble(err)
	}
	if n == nil {
		return results, nil, nil
	}
	claimed = make([]jobs.Claimed, 0, len(n.won))
	for _, row := range n.won {
		claimed = append(claimed, n.claimed(row, nil, n.until))
	}
	return results, claimed, nil
}

// lookTimeout bounds what is read for the next claim.
const lookTimeout = 5 * time.Second

// lookAhead does what the next claim would begin with, while the ends and n are written:
// the rescan that is due, and the next block where too little is left of this one. So
// the next end brings its jobs, too. It ends the claim, once the function that it returns
// was called: then the ends are written. The look itself keeps nobody waiting.
func (s *Store) lookAhead(ctx context.Context, n *next) (written func()) {
	if n == nil {
		return func() { <-s.claiming }
	}
	l := n.cursor
	rescan, block := !s.tables.Options.Clock().Before(l.next), n.endsBlock()
	if !rescan && !block {
		return func() { <-s.claiming }
	}
	settled, held := make(chan struct{}), n.block
	go func() {
		defer func() { <-s.claiming }()
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		var x prefetched
		if !rescan || s.rescanAhead(look, l) == nil {
			x = s.blockBeside(look, n.r, l, block).besides(held)
		}
		<-settled
		l.fromHead = l.fromHead.followedBy(x)
	}()
	return func() { close(settled) }
}

// endsBlock says that a claim like this one finds too little in what is left of the
// block, and rows may stand behind it.
func (n *next) endsBlock() bool {
	return n.r.Soon > 0 && len(n.cursor.fromHead.rows) < n.r.Limit && !n.cursor.last
}

// rescanAhead reads the first page of a rescan, if one is due. The next claim has what
// it finds.
func (s *Store) rescanAhead(ctx context.Context, l *scanCursor) error {
	c, now := s.newClaim(jobs.ClaimRequest{}), s.tables.Options.Clock()
	end, due := l.rescanBound(now)
	if !due {
		return nil
	}
	ours, err := c.isRescanner(ctx, l, now)
	if err != nil || !ours {
		return err
	}
	l.beginRescan(end)
	if done, err := c.rescanNext(ctx, l); err != nil || done {
		return err
	}
	return c.endTurn(ctx, l, now) // who knows when this process has a slot for what was found
}

// blockBeside is the next block, if one is wanted. What fails is left to the next claim,
// which meets the same trouble and tells.
func (s *Store) blockBeside(ctx context.Context, r jobs.ClaimRequest, l *scanCursor, wanted bool) prefetched {
	if !wanted {
		return prefetched{}
	}
	x, more, err := s.newClaim(r).blockAhead(ctx, l)
	if err != nil {
		return prefetched{}
	}
	l.last = !more
	return x
}

// besides is a block without what this process held before: it is in both where the cursor
// was set back meanwhile.
func (x prefetched) besides(held prefetched) prefetched {
	there := make(map[int64]bool, len(held.rows))
	for _, row := range held.rows {
		there[row.ID] = true
	}
	x.rows = slices.DeleteFunc(x.rows, func(row *tables.Candidate) bool { return there[row.ID] })
	return x
}

// followedBy is what is left of a block with the next one behind it. It is claimed
// first and at once, so it lasts as long as the next one.
func (x prefetched) followedBy(y prefetched) prefetched {
	if len(y.rows) == 0 {
		return x
	}
	y.rows, y.failed = append(slices.Clone(x.rows), y.rows...), x.failed
	return y
}

// peekNext are the jobs that a claim would take without another look, nil where
// it would have to look: for rows that fall due, for a type's limit, for duplicates.
func (s *Store) peekNext(r jobs.ClaimRequest) *next {
	if len(s.deferred)+len(s.inDoubt) > 0 {
		return nil
	}
	for _, queue := range r.Queues {
		if s.seenEmpty(queue) {
			continue
		}
		l, now := s.firstCursor(queue), s.tables.Options.Clock()
		if l == nil || l.fromHead.failed || now.Sub(l.fromHead.read) > prefetchTTL || l.looksElsewhere(now) {
			return nil
		}
		return s.nextFrom(l, r)
	}
	return nil
}

// looksElsewhere says that rows before the cursor are due to be looked for.
func (l *scanCursor) looksElsewhere(now time.Time) bool {
	return l.rescanning || l.long && !now.Before(l.pending.next) || l.pending.anyDue(now)
}

// simple says that a row is claimed by its state alone.
func simple(row *tables.Candidate) bool {
	return !row.Policy.Limited() && !row.Policy.Coalesce && row.Fault == nil && !row.Rescued
}

// nextFrom are the first candidates that a scan cursor's last look left over, as
// many as one statement can claim without a further question.
func (s *Store) nextFrom(l *scanCursor, r jobs.ClaimRequest) *next {
	n := &next{claim: s.newClaim(r), cursor: l}
	n.block = n.takePrefetched(&l.fromHead)
	l.fromHead = n.block.without(n.choose(n.block, min(r.Limit, s.tables.MaxBatch)))
	if n.chosen = n.rows; len(n.rows) == 0 {
		return nil
	}
	return n
}

// choose picks the first rows that one statement can claim, at most limit, past those
// of other programs. passed is how many candidates it is done with.
func (n *next) choose(x prefetched, limit int) (passed int) {
	for ; passed < len(x.rows) && len(n.rows) < limit; passed++ {
		row := x.rows[passed]
		if n.s.tables.Claimable(n.cursor.queue, row) {
			if !simple(row) || n.tooEarly(row, len(n.taken)+len(n.rows)) ||
				len(n.rows) > 0 && stateOf(row) != stateOf(n.rows[0]) {
				break
			}
			n.rows = append(n.rows, row)
		}
	}
	n.until = n.s.tables.LeaseMark(x.now, int64(n.r.Lease.Seconds()))
	return passed
}

// putBack keeps what the claim did not get for the next claim.
func (n *next) putBack() {
	n.block.rows = slices.DeleteFunc(slices.Clone(n.block.rows), func(x *tables.Candidate) bool {
		return slices.Contains(n.won, x)
	})
	n.block.failed = true
	n.cursor.fromHead = n.block
}

// firstCursor is the scan cursor with which a claim from queue would begin, nil
// where the claim would have to ask the database for it.
func (s *Store) firstCursor(queue string) *scanCursor {
	if s.tables.Layout.Name() == tables.Stock {
		return s.cursorOf(queue, 0)
	}
	c, now := s.classesOf(queue), s.tables.Options.Clock()
	if len(c.priorities) == 0 || !now.Before(c.next) || !now.Before(c.expired) {
		return nil
	}
	return s.cursorOf(queue, c.priorities[0])
}
