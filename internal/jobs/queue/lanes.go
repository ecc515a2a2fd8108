package queue

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A lane is what is claimed in one order: a queue of a stock table, or one
// class of priority in a queue of an extended one.
//
// Its head is a floor that moves past rows which were claimed, or found to be
// another's, so that no claim steps twice over PHP's rows, delayed rows or
// deleted rows that the server has not purged. What appears below the floor (a
// late commit, a retried or ripened row, a lease that ran out) is found by
// sweeps from the start, which come as often as they are cheap. Where many rows
// of others make them dear, pending finds what falls due at a known time.
type scanCursor struct {
	queue    string
	priority int

	lowWater  tables.RowPosition
	exhausted bool // the last look at the head found nothing more

	rescanning bool
	rescan     tables.RowPosition // how far this sweep is
	rescanEnd  tables.RowPosition // zero: to the end
	cost       time.Duration
	next       time.Time // of Options.Clock: no sweep before it
	pages      int       // that this sweep has read

	headPage, sweepPage  pageSize
	fromHead, fromRescan prefetched // of the head, and of the sweep

	// long says that sweeps read too much to come often: pending has the rows
	// that fall due in the meantime.
	long    bool
	pending pending
	// looking and looked are of a claim that must see the whole lane.
	looking, looked bool
}

// prefetched are candidates that the last look found and the claim had no room for: the next claim need not look. They are stale, which the claim's
// compare-and-set sees, and they keep the lane's order, as what comes later
// stands behind them.
type prefetched struct {
	rows []*tables.Candidate
	now  int64     // of the database, when they were read
	read time.Time // of Options.Clock
}

// prefetchTTL is how long spares are worth trying.
const prefetchTTL = 250 * time.Millisecond

type scanCursorKey struct {
	queue    string
	priority int
}

// A sweep may cost one part in sweepShare of the time, and comes no more often
// than sweepRest.
const (
	rescanShare    = 20
	rescanInterval = 50 * time.Millisecond
)

// takePrefetched hands spares out, once; none where other claimers are expected, who
// would have taken them.
func (c *claim) takePrefetched(from *prefetched) prefetched {
	x := *from
	*from = prefetched{}
	if age := c.s.Options.Clock().Sub(x.read); c.s.contended > 0 || age < 0 || age > prefetchTTL {
		return prefetched{}
	}
	return x
}

func (x prefetched) without(passed int) prefetched { return prefetched{x.rows[passed:], x.now, x.read} }

// inLane looks at rows of a lane between two positions.
func (s *Store) inLane(l *scanCursor, from, to tables.RowPosition, state string, limit int) tables.CandidateQuery {
	a, aArgs := s.After(from)
	b, bArgs := s.UpTo(to)
	args := append(append([]any{l.queue}, aArgs...), bArgs...)
	return tables.CandidateQuery{Where: "queue = ?" + s.Layout.Class(l.priority) + a + b + " AND " + state, Args: args, Order: s.OrderBy(), Hint: s.IndexHint(), Limit: limit}
}

// lane returns the lane of a queue and class, made on first use.
func (s *Store) lane(queue string, priority int) *scanCursor {
	key := scanCursorKey{queue, priority}
	if s.lanes[key] == nil {
		if len(s.lanes) > 1000 { // somebody gives each job a priority of its own
			clear(s.lanes)
		}
		s.lanes[key] = &scanCursor{queue: queue, priority: priority, next: s.Options.Clock().Add(rescanInterval)}
	}
	return s.lanes[key]
}

// classes are the priorities that wait in a queue of an extended table,
// highest first.
type classes struct {
	priorities []int
	next       time.Time // when they are read again
	expired    time.Time // when lost leases are looked for again
	lost       int64     // how far this look for them is; 0 before the first row
	lostPage   pageSize
}

func (s *Store) classesOf(queue string) *classes {
	if s.classes[queue] == nil {
		s.classes[queue] = &classes{}
	}
	return s.classes[queue]
}

// waitingClasses lists the classes of priority in a queue. They are read again
// as often as that is cheap, or when told to; fresh says that they just were.
func (s *Store) waitingClasses(ctx context.Context, queue string, again bool) (priorities []int, fresh bool, err error) {
	c := s.classesOf(queue)
	begun := s.Options.Clock()
	if !again && begun.Before(c.next) {
		return c.priorities, false, nil
	}
	var found []int
	err = s.Query(ctx, s.DB, func(r *sql.Rows) error {
		var p int
		err := r.Scan(&p)
		found = append(found, p)
		return err
	}, "SELECT DISTINCT priority FROM "+s.Layout.Table().Name+s.IndexHint()+" WHERE queue = ? AND "+s.Layout.Waiting()+" ORDER BY priority DESC", queue)
	if err != nil {
		return nil, false, fmt.Errorf("reading the priorities that wait on %s: %w", queue, err)
	}
	done := s.Options.Clock()
	c.priorities, c.next = found, done.Add(min(rescanShare*done.Sub(begun), 10*time.Second))
	return found, true, nil
}
