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
		defer func() { <-s.claiming }()
		n = s.peekNext(r)
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
	for _, row := range n.won {
		claimed = append(claimed, n.claimed(row, nil, n.until))
	}
	return results, claimed, nil
}

// peekNext are the jobs that a claim would take without another look, nil where
// it would have to look: for rows below the low-water mark, for a type's limit, for
// duplicates.
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
	return l.rescanning || !now.Before(l.next) || l.long && !now.Before(l.pending.next) || l.pending.anyDue(now)
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
