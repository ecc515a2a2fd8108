package queue

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// prefetchTTL is how long prefetched candidates are worth trying, and a block belongs to
// its process. It is several times of what the block is read for: a machine that is busy
// with many processes lets each of them work by fits and starts.
const prefetchTTL = 750 * time.Millisecond

// emptyTTL is how long a queue that was found empty is left out.
const emptyTTL = 250 * time.Millisecond

// A rescan may cost one part in rescanShare of the time, and comes no more often
// than every rescanInterval.
const (
	rescanShare    = 20
	rescanInterval = 50 * time.Millisecond
)

// maxArrivals bounds how many queues are distinguished when jobs are enqueued.
const maxArrivals = 1000

// NoteArrival says that a job was enqueued into a queue, "" is any queue: the next
// claim looks there, even if it was empty a moment ago.
func (s *Store) NoteArrival(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue = strings.ToLower(queue) // databases may take "A" for "a"
	if len(s.arrivals) >= maxArrivals && s.arrivals[queue] == 0 {
		queue = ""
	}
	s.arrivals[queue]++
}

func (s *Store) arrivalsIn(queue string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrivals[""] + s.arrivals[strings.ToLower(queue)]
}

// seenEmpty says that a look at a queue found nothing to claim less than
// emptyTTL ago, and that no job was enqueued since, as far as this process was
// told: claims from the queues behind it do without another look.
func (s *Store) seenEmpty(queue string) bool {
	look, ok := s.emptied[queue]
	if !ok || look.arrivals != s.arrivalsIn(queue) {
		return false
	}
	age := s.tables.Options.Clock().Sub(look.at)
	return age >= 0 && age <= emptyTTL
}

func (s *Store) noteEmpty(queue string, look emptyLook) {
	if len(s.emptied) >= maxArrivals {
		clear(s.emptied)
	}
	s.emptied[queue] = look
}

// takePrefetched returns prefetched candidates, once.
func (c *claim) takePrefetched(from *prefetched) prefetched {
	x := *from
	*from = prefetched{}
	if age := c.s.tables.Options.Clock().Sub(x.read); age < 0 || age > prefetchTTL {
		return prefetched{}
	}
	return x
}

func (x prefetched) without(passed int) prefetched {
	return prefetched{rows: x.rows[passed:], now: x.now, read: x.read}
}

// between looks at rows of a scan cursor between two positions.
func (s *Store) between(l *scanCursor, from, to tables.RowPosition, state string, limit int) tables.CandidateQuery {
	a, aArgs := s.tables.After(from)
	b, bArgs := s.tables.UpTo(to)
	args := append(append([]any{l.queue}, aArgs...), bArgs...)
	return tables.CandidateQuery{Where: "queue = ?" + s.tables.Layout.Class(l.priority) + a + b + " AND " + state,
		Args: args, Order: s.tables.OrderBy(), Hint: s.tables.HintWithin(from.ID, to.ID, limit), Limit: limit}
}

// cursorOf returns the scan cursor of a queue and priority, made on first use.
func (s *Store) cursorOf(queue string, priority int) *scanCursor {
	key := scanCursorKey{queue, priority}
	if s.cursors[key] == nil {
		if len(s.cursors) > 1000 { // a program gives each job another priority
			clear(s.cursors)
		}
		s.cursors[key] = &scanCursor{queue: queue, priority: priority, name: s.cursorName(key),
			next: s.tables.Options.Clock().Add(rescanInterval)}
	}
	return s.cursors[key]
}

func (s *Store) classesOf(queue string) *classes {
	if s.classes[queue] == nil {
		s.classes[queue] = &classes{}
	}
	return s.classes[queue]
}

// waitingClasses lists the classes of priority in a queue. They are read again
// as often as that is cheap, or where again says so; fresh says that they just were.
func (s *Store) waitingClasses(ctx context.Context, queue string, again bool) (priorities []int, fresh bool,
	err error) {
	c := s.classesOf(queue)
	begun := s.tables.Options.Clock()
	if !again && begun.Before(c.next) {
		return c.priorities, false, nil
	}
	var found []int
	err = s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var p int
		err := r.Scan(&p)
		found = append(found, p)
		return err
	}, "SELECT DISTINCT priority FROM "+s.tables.Layout.Table().Name+s.tables.IndexHint()+" WHERE queue = ? AND "+
		s.tables.Layout.Waiting()+" ORDER BY priority DESC", queue)
	if err != nil {
		return nil, false, fmt.Errorf("reading the priorities that wait on %s: %w", queue, err)
	}
	done := s.tables.Options.Clock()
	c.priorities, c.next = found, done.Add(min(rescanShare*done.Sub(begun), 10*time.Second))
	return found, true, nil
}

// readCursor reads where the fleet's cursor is and, where the order is by id, which
// row of the queue is the last one.
func (s *Store) readCursor(ctx context.Context, l *scanCursor) (at tables.Cursor, err error) {
	together := s.tables.OwnDB == s.tables.DB
	columns, args, into := "at, id", []any{}, []any{&at.Is.At, &at.Is.ID}
	if together {
		last, newest := s.tables.Ends(l.newest)
		columns += ", " + last + ", " + newest
		if into = append(into, &at.Last, &at.Newest); !s.tables.OrderedByTime() {
			args = append(args, l.queue)
		}
	}
	at.Found, err = s.tables.QueryRow(ctx, s.tables.OwnDB, into, "SELECT "+columns+
		" FROM cmsjobs_cursors WHERE name = ?", append(args, l.name)...)
	if err == nil && !at.Found {
		_, err = s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_cursors",
			"name, rescan_until", "(?, "+s.tables.MillisNow()+")"), l.name)
	}
	if err == nil && !s.tables.OrderedByTime() && (!together || !at.Found) {
		at.Last, err = s.lastOfQueue(ctx, l)
	}
	if err != nil {
		return at, fmt.Errorf("reading how far %s is claimed: %w", l.queue, err)
	}
	return at, nil
}

// readCursorAndLast reads the queue's last row also where it is not behind the cursor.
func (s *Store) readCursorAndLast(ctx context.Context, l *scanCursor) (at tables.Cursor, err error) {
	at, err = s.readCursor(ctx, l)
	if err == nil && !s.tables.OrderedByTime() && at.Last < at.Is.ID {
		at.Last, err = s.lastOfQueue(ctx, l)
	}
	return at, err
}

// lastOfQueue is the number of the queue's last row, -1 where it has none.
func (s *Store) lastOfQueue(ctx context.Context, l *scanCursor) (id int64, err error) {
	_, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&id}, s.tables.LastOfQueue(), l.queue)
	return id, err
}

// moveCursor moves the fleet's cursor, if it is still where it was.
func (s *Store) moveCursor(ctx context.Context, q tables.Tx, m cursorMove) (moved bool, err error) {
	if m.from == m.to {
		return true, nil
	}
	statement, args := m.statement()
	n, err := s.tables.Exec(ctx, q, statement, args...)
	return n == 1, err
}
