package queue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

const (
	// maxPending bounds how many pending rows are remembered, and soon how far
	// ahead they may be due where there are more.
	maxPending, soon = 10_000, time.Minute
	// pendingRest is when a row is tried again that could not be claimed in the
	// second that was expected: the database counts whole seconds.
	pendingRest = 500 * time.Millisecond
	// releasedTries is how often a row that this process released is read.
	releasedTries = 4
	// pendingMost bounds the time between two searches.
	pendingMost = 30 * time.Second
	// maxDueTogether bounds how many rows are read together.
	maxDueTogether = 500
)

// claimFallenDue takes pending rows whose time has come.
func (c *claim) claimFallenDue(ctx context.Context, l *scanCursor) error {
	delayed := c.s.takeDelays(l.queue)
	if c.s.tables.Layout.Name() != tables.Stock {
		return nil // an index finds them
	}
	p := &l.pending
	for id, at := range delayed { // not for ever: another process may have it by then
		p.add(id, falls{at: at, tries: releasedTries})
	}
	if l.long && !c.s.tables.Options.Clock().Before(p.next) {
		if err := c.search(ctx, l); err != nil {
			return err
		}
	}
	ids := p.takeDue(c.s.tables.Options.Clock())
	if len(ids) == 0 {
		return nil
	}
	in, args := c.s.tables.Dialect.IDRanges(ids)
	state := "(" + c.s.tables.Layout.Waiting() + " OR " + c.s.tables.Layout.Expired(c.s.tables.SecondsNow(),
		c.s.tables.RetryAfter) + ")"
	found, now, err := c.s.tables.ReadCandidates(ctx, c.s.tables.DB, tables.CandidateQuery{
		Where: "queue = ? AND " + in + " AND " + state,
		Args:  append([]any{l.queue}, args...), Order: c.s.tables.OrderBy(), Limit: len(ids)})
	if err != nil {
		return err
	}
	passed, err := c.process(ctx, l.queue, found, now)
	for _, x := range found[:passed] {
		delete(p.due, x.ID) // taken, or foreign, or deferred by its type's limit
	}
	return err
}

// add remembers a row, where there is space for it.
func (p *pending) add(id int64, x falls) bool {
	if p.due == nil {
		p.due = map[int64]falls{}
	}
	if len(p.due) >= 2*maxPending {
		return false
	}
	p.due[id] = x
	return true
}

// anyDue says that a look at some row is due.
func (p *pending) anyDue(now time.Time) bool {
	for _, x := range p.due {
		if !now.Before(x.at) {
			return true
		}
	}
	return false
}

// takeDue lists rows that may be claimed now, the first by id, each to be tried
// again after pendingRest.
func (p *pending) takeDue(now time.Time) []int64 {
	var ids []int64
	for id, x := range p.due {
		if !now.Before(x.at) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = ids[:min(len(ids), maxDueTogether)]
	for _, id := range ids {
		if x := p.due[id]; x.tries == 1 || x.missing == 1 {
			delete(p.due, id)
		} else if x.missing > 0 {
			p.due[id] = falls{at: now.Add(missingTries[len(missingTries)-x.missing+1]), missing: x.missing - 1}
		} else {
			p.due[id] = falls{at: now.Add(pendingRest), tries: max(x.tries-1, 0)}
		}
	}
	return ids
}

// search reads which rows are pending. One that was and is no longer has ended,
// or was made due: it is read once more.
func (c *claim) search(ctx context.Context, l *scanCursor) error {
	s, t, p := c.s, c.s.tables.Layout.Table(), &l.pending
	begun, now := s.tables.Options.Clock(), s.tables.SecondsNow()
	later := fmt.Sprintf("(attempts > 0 OR %s > %s)", t.Due.Name, t.Due.FromExpr(now))
	if p.near {
		later += fmt.Sprintf(" AND %s <= %s", t.Due.Name,
			t.Due.FromExpr(fmt.Sprintf("%s + %d", now, tables.WholeSeconds(soon))))
	}
	found := map[int64]falls{}
	var first time.Time // of what is not due yet
	err := s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var id, due, clock int64
		var locked sql.NullInt64
		err := r.Scan(&id, &due, &locked, &clock)
		if locked.Valid {
			due = locked.Int64 + s.tables.RetryAfter + 1
		}
		at := s.tables.Options.Clock().Add(time.Duration(due-clock) * time.Second)
		if found[id] = (falls{at: at}); at.After(begun) && (first.IsZero() || at.Before(first)) {
			first = at
		}
		return err
	}, fmt.Sprintf("SELECT id, %s, %s, %s FROM %s%s WHERE queue = ? AND (%s IS NOT NULL OR %s)%s LIMIT %d",
		t.Due.Seconds(), t.Locked.Seconds(), now, t.Name, s.tables.IndexHint(), t.Locked.Name, later,
		s.tables.OrderBy(), maxPending), l.queue)
	if err != nil {
		return fmt.Errorf("looking for running and delayed jobs in %s: %w", t.Plain, err)
	}
	done := s.tables.Options.Clock()
	p.near = len(found) == maxPending
	for id, x := range p.due {
		if x.missing > 0 || x.tries > 0 {
			found[id] = x
		} else if _, still := found[id]; !still && len(found) < 2*maxPending {
			found[id] = falls{at: done, tries: 1}
		}
	}
	p.due, p.next = found, done.Add(min(max(rescanShare*done.Sub(begun), rescanInterval), pendingMost))
	if !first.IsZero() {
		s.wakeAt(l.queue, first)
	}
	return nil
}

// A queue keeps at most maxWakes wake-ups, wakeStep apart at least; what has
// none is found by the next poll.
const (
	maxWakes = 1000
	wakeStep = 100 * time.Millisecond
)

// noteDelays remembers when jobs that were released are due again, and
// wakes a worker then.
func (s *Store) noteDelays(ends []pendingSettlement) {
	now := s.tables.Options.Clock()
	for _, e := range ends {
		if e.gone() {
			continue
		}
		queue, at := e.Claimed.Job.Queue, now.Add(time.Duration(tables.WholeSeconds(e.Delay))*time.Second)
		s.noteDelay(queue, e.Claimed.Lease.ID, at)
		if e.Delay > 0 {
			s.wakeAt(queue, at)
		}
	}
}

func (s *Store) noteDelay(queue string, id int64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.delays.rows[queue]
	if rows == nil {
		rows = map[int64]time.Time{}
		s.delays.rows[queue] = rows
	}
	if len(rows) < maxPending {
		rows[id] = at
	}
}

// takeDelays returns what was noted of a queue, once.
func (s *Store) takeDelays(queue string) map[int64]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.delays.rows[queue]
	delete(s.delays.rows, queue)
	return rows
}

// wakeAt tells the workers of a queue at that time that a job is due.
func (s *Store) wakeAt(queue string, at time.Time) {
	at = at.Truncate(wakeStep).Add(wakeStep)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.delays.wakes[queue]
	if set == nil {
		set = map[time.Time]bool{}
		s.delays.wakes[queue] = set
	}
	if set[at] || len(set) >= maxWakes {
		return
	}
	set[at] = true
	time.AfterFunc(at.Sub(s.tables.Options.Clock()), func() {
		s.mu.Lock()
		delete(set, at)
		s.mu.Unlock()
		s.NoteArrival(queue)
		s.tables.Options.Wake(queue)
	})
}
