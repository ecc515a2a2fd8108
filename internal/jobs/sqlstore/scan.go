package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
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

	lowWater  rowPosition
	exhausted bool // the last look at the head found nothing more

	rescanning bool
	rescan     rowPosition // how far this sweep is
	rescanEnd  rowPosition // zero: to the end
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
	rows []*candidate
	now  int64     // of the database, when they were read
	read time.Time // of Options.Clock
}

// prefetchTTL is how long spares are worth trying.
const prefetchTTL = 250 * time.Millisecond

type scanCursorKey struct {
	queue    string
	priority int
}

// rowPosition is a place in a lane's order; the zero value is before the first.
type rowPosition struct {
	at string // moment.text of the due column; unused when the order is by id
	id int64
}

// A sweep may cost one part in sweepShare of the time, and comes no more often
// than sweepRest.
const (
	rescanShare    = 20
	rescanInterval = 50 * time.Millisecond
	// sniffed is how much of an oversized payload is read to name its type.
	sniffed = 64 << 10
	// oversize leaves room for the envelope around the largest payload that
	// Enqueue takes.
	oversize = jobs.MaxPayload + 4<<10
	// phpJob stands in the opening of the payloads of Laravel's own
	// job classes. Rows with it are not even read; for all others Go decides.
	phpJob = `"job":"Illuminate`
)

// byTime says that the lane's order is (due, id) and not id.
func (s *Store) byTime() bool { return s.t.kind() == Extended || s.t.shape().ordered != "" }

// hint names the index that serves the order, as the optimizer, seeing few
// rows in one moment and millions in the next, now and then sorts the table.
func (s *Store) hint() string {
	t := s.t.shape()
	if s.d.Name != "mysql" {
		return ""
	}
	switch {
	case t.ordered != "":
		return " FORCE INDEX (" + s.d.Ident(t.ordered) + ")"
	case t.byQueue != "":
		return " FORCE INDEX (" + s.d.Ident(t.byQueue) + ")"
	case s.t.kind() == Stock:
		return " FORCE INDEX (PRIMARY)"
	}
	return ""
}

func (s *Store) order() string {
	if s.byTime() {
		return " ORDER BY " + s.t.shape().due.name + ", id"
	}
	return " ORDER BY id"
}

// after and upTo bound a read in the lane's order.
func (s *Store) after(p rowPosition) (string, []any) {
	switch {
	case p == rowPosition{}:
		return "", nil
	case !s.byTime():
		return fmt.Sprintf(" AND id > %d", p.id), nil
	}
	due := s.t.shape().due
	literal, args := due.fromText(p.at)
	return fmt.Sprintf(" AND %s >= %s AND NOT (%s = %s AND id <= %d)", due.name, literal, due.name, literal, p.id), twice(args)
}

func (s *Store) upTo(p rowPosition) (string, []any) {
	switch {
	case p == rowPosition{}:
		return "", nil
	case !s.byTime():
		return fmt.Sprintf(" AND id <= %d", p.id), nil
	}
	due := s.t.shape().due
	literal, args := due.fromText(p.at)
	return fmt.Sprintf(" AND %s <= %s AND NOT (%s = %s AND id > %d)", due.name, literal, due.name, literal, p.id), twice(args)
}

// takePrefetched hands spares out, once; none where other claimers are expected, who
// would have taken them.
func (c *claim) takePrefetched(from *prefetched) prefetched {
	x := *from
	*from = prefetched{}
	if age := c.s.o.Clock().Sub(x.read); c.s.contended > 0 || age < 0 || age > prefetchTTL {
		return prefetched{}
	}
	return x
}

func (x prefetched) without(passed int) prefetched { return prefetched{x.rows[passed:], x.now, x.read} }

func twice(args []any) []any { return append(append([]any{}, args...), args...) }

// candidateQuery reads candidates.
type candidateQuery struct {
	where string // beside the prefilter and "due"
	args  []any
	order string
	hint  string
	limit int
	whole int // up to how many bytes payloads are read whole; 0 is oversize
}

// inLane looks at rows of a lane between two positions.
func (s *Store) inLane(l *scanCursor, from, to rowPosition, state string, limit int) candidateQuery {
	a, aArgs := s.after(from)
	b, bArgs := s.upTo(to)
	args := append(append([]any{l.queue}, aArgs...), bArgs...)
	return candidateQuery{where: "queue = ?" + s.t.class(l.priority) + a + b + " AND " + state, args: args, order: s.order(), hint: s.hint(), limit: limit}
}

// reading is the statement of a look.
func (s *Store) reading(l candidateQuery) string {
	t := s.t.shape()
	now, whole := s.now(), cmp.Or(l.whole, oversize)
	return strings.Join([]string{"SELECT id,", t.due.exactText(), ",", t.due.seconds(), ",", t.created.seconds(), ", attempts,", t.locked.seconds(), ",", s.t.columns(), ",",
		s.d.Bytes, "(", t.payload, "), CASE WHEN", s.d.Bytes, "(", t.payload, ") <=", fmt.Sprint(whole), "THEN", t.payload, "ELSE SUBSTR(", t.payload, ", 1,", fmt.Sprint(min(whole, sniffed)), ") END,", now,
		"FROM", t.name, l.hint, "WHERE", l.where, "AND", t.due.name, "<=", t.due.fromExpr(now),
		"AND NOT", s.d.OpensWith(t.payload, phpJob), l.order, "LIMIT", fmt.Sprint(l.limit)}, " ")
}

// read returns due rows, and the database's now. No row is locked.
func (s *Store) read(ctx context.Context, q Tx, l candidateQuery) ([]*candidate, int64, error) {
	var found []*candidate
	var clock int64
	sighted := s.startSighting()
	err := s.query(ctx, q, func(r *sql.Rows) error {
		c := new(candidate)
		var created sql.NullInt64
		err := r.Scan(&c.id, &c.at, &c.due, &created, &c.attempts, &c.locked, &c.status, &c.token, &c.name, &c.priority, &c.max, &c.size, &c.payload, &clock)
		c.seen = clock
		c.created = created.Int64
		found = append(found, c)
		return err
	}, s.reading(l), l.args...)
	if err != nil {
		return nil, 0, fmt.Errorf("looking for due jobs in %s: %w", s.t.shape().plain, err)
	}
	if len(found) > 0 {
		sighted(time.Unix(clock, 0), time.Second)
	}
	return found, clock, nil
}

// lane returns the lane of a queue and class, made on first use.
func (s *Store) lane(queue string, priority int) *scanCursor {
	key := scanCursorKey{queue, priority}
	if s.lanes[key] == nil {
		if len(s.lanes) > 1000 { // somebody gives each job a priority of its own
			clear(s.lanes)
		}
		s.lanes[key] = &scanCursor{queue: queue, priority: priority, next: s.o.Clock().Add(rescanInterval)}
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
	begun := s.o.Clock()
	if !again && begun.Before(c.next) {
		return c.priorities, false, nil
	}
	var found []int
	err = s.query(ctx, s.db, func(r *sql.Rows) error {
		var p int
		err := r.Scan(&p)
		found = append(found, p)
		return err
	}, "SELECT DISTINCT priority FROM "+s.t.shape().name+s.hint()+" WHERE queue = ? AND "+s.t.waiting()+" ORDER BY priority DESC", queue)
	if err != nil {
		return nil, false, fmt.Errorf("reading the priorities that wait on %s: %w", queue, err)
	}
	done := s.o.Clock()
	c.priorities, c.next = found, done.Add(min(rescanShare*done.Sub(begun), 10*time.Second))
	return found, true, nil
}
