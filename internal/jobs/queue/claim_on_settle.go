package queue

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// SettleAndClaim implements jobs.SettleClaimer. The next job comes from what the last
// claim saw beside its own; where that says nothing, the end alone is written.
func (s *Store) SettleAndClaim(ctx context.Context, end jobs.Settlement, r jobs.ClaimRequest) (lost error,
	claimed []jobs.Claimed, err error) {
	var n *next
	select {
	case s.claiming <- struct{}{}:
		defer func() { <-s.claiming }()
		n = s.peekNext(r)
	default: // another call is claiming
	}
	results := make([]error, 1)
	if err := s.settle(ctx, []pendingSettlement{{Settlement: checked(&end)}}, results, n); err != nil {
		if n != nil && database.Classify(err).Unclear() {
			s.recordInDoubt(n.claim, []*tables.Candidate{n.row}, n.until)
		}
		return nil, nil, s.tables.NoteTrouble(err)
	}
	if n != nil && n.won {
		claimed = []jobs.Claimed{n.claimed(n.row, nil, n.until)}
	}
	return results[0], claimed, nil
}

// peekNext is the job that a claim would take without another look, nil where
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
		if l == nil || l.rescanning || !now.Before(l.next) || l.long && l.pending.anyDue(now) {
			return nil
		}
		return s.nextFrom(l, r)
	}
	return nil
}

// nextFrom is the first candidate that a scan cursor's last look left over.
func (s *Store) nextFrom(l *scanCursor, r jobs.ClaimRequest) *next {
	c := s.newClaim(r)
	x := c.takePrefetched(&l.fromHead)
	for i, row := range x.rows {
		if !s.tables.Claimable(l.queue, row) {
			continue
		}
		if row.Policy.Limit > 0 || row.Policy.Coalesce || row.Fault != nil || row.Rescued {
			l.fromHead = x.without(i)
			return nil
		}
		l.fromHead = x.without(i + 1)
		l.lowWater = tables.RowPosition{At: row.At, ID: row.ID}
		return &next{claim: c, row: row, until: s.tables.LeaseMark(x.now, int64(r.Lease.Seconds()))}
	}
	return nil
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
