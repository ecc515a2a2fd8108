package tables

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

const (
	// Sniffed is how much of an oversized payload is read to name its type.
	Sniffed = 64 << 10
	// Oversize leaves space for the envelope around the largest payload that
	// Enqueue takes.
	Oversize = jobs.MaxPayload + 4<<10
	// PHPJob stands in the opening of the payloads of Laravel's own
	// job classes. Rows with it are not even read; for all others Go decides.
	PHPJob = `"job":"Illuminate`
)

// RowPosition is a place in the order of a scan cursor; the zero value is before the
// first row.
type RowPosition struct {
	At string // TimeColumn.ExactText of the due column; unused when the order is by id
	ID int64
}

// OrderedByTime says that a scan cursor's order is (due, id) and not id.
func (s *Tables) OrderedByTime() bool {
	return s.Layout.Name() == Extended || s.Layout.Table().Ordered != ""
}

// IndexHint names the index that serves the order, as the optimizer, seeing few
// rows in one moment and millions in the next, now and then sorts the table.
func (s *Tables) IndexHint() string {
	t := s.Layout.Table()
	index := cmp.Or(t.Ordered, t.byQueue)
	switch {
	case index != "":
		index = s.Dialect.Ident(index)
	case s.Layout.Name() == Stock:
		index = "PRIMARY"
	default:
		return ""
	}
	return s.force(index)
}

func (s *Tables) force(index string) string {
	return s.Dialect.Choose(database.Variants{MySQL: " FORCE INDEX (" + index + ")"})
}

// HintWithin is IndexHint for a read of at most so many rows between two numbers, 0 is the
// end. Where the numbers hold few others, the rows are read as they stand in the table: by
// the queue's index each of them costs a second search.
func (s *Tables) HintWithin(from, to int64, rows int) string {
	if s.OrderedByTime() || to == 0 || to-from > 2*int64(rows) {
		return s.IndexHint()
	}
	return s.force("PRIMARY")
}

// OrderBy is the order of a scan cursor.
func (s *Tables) OrderBy() string {
	if s.OrderedByTime() {
		return " ORDER BY " + s.Layout.Table().Due.Name + ", id"
	}
	return " ORDER BY id"
}

// After bounds a read in a scan cursor's order: it begins behind p.
func (s *Tables) After(p RowPosition) (string, []any) {
	switch {
	case p == RowPosition{}:
		return "", nil
	case !s.OrderedByTime():
		return fmt.Sprintf(" AND id > %d", p.ID), nil
	}
	due := s.Layout.Table().Due
	literal, args := due.fromText(p.At)
	return fmt.Sprintf(" AND %s >= %s AND NOT (%s = %s AND id <= %d)", due.Name, literal, due.Name, literal, p.ID),
		twice(args)
}

// UpTo bounds a read in a scan cursor's order: it ends at p.
func (s *Tables) UpTo(p RowPosition) (string, []any) {
	switch {
	case p == RowPosition{}:
		return "", nil
	case !s.OrderedByTime():
		return fmt.Sprintf(" AND id <= %d", p.ID), nil
	}
	due := s.Layout.Table().Due
	literal, args := due.fromText(p.At)
	return fmt.Sprintf(" AND %s <= %s AND NOT (%s = %s AND id > %d)", due.Name, literal, due.Name, literal, p.ID),
		twice(args)
}

func twice(args []any) []any { return append(append([]any{}, args...), args...) }

// CandidateQuery reads candidates.
type CandidateQuery struct {
	Where string // beside the prefilter and "due"
	Args  []any
	Order string
	Hint  string
	Limit int
	Whole int // up to how many bytes payloads are read whole; 0 is oversize
	// Cursor is read beside them, in one statement; nil: none is.
	Cursor *Cursor
}

// Cursor is where all processes read a queue, a row of cmsjobs_cursors. What is below its
// name is read.
type Cursor struct {
	Name, Queue string
	Known       int64 // a number up to which the table's last row is known

	Found bool // the row is there
	Is    RowPosition
	Last  int64 // the queue's last row, -1: none behind the cursor; 0: not read, as the order is by time
	// Newest is the table's last row, -1: none behind the cursor and Known; 0: not read.
	Newest int64
}

// Reading is the statement of ReadCandidates.
func (s *Tables) Reading(l CandidateQuery) string {
	t := s.Layout.Table()
	now, whole := s.SecondsNow(), cmp.Or(l.Whole, Oversize)
	reading := strings.Join([]string{"SELECT id,", t.Due.ExactText(), ",", t.Due.Seconds(), ",", t.Created.Seconds(),
		", attempts,", t.Locked.Seconds(), ",", s.Layout.Columns(), ",",
		s.Dialect.Bytes, "(", t.Payload, "), CASE WHEN", s.Dialect.Bytes, "(", t.Payload, ") <=", fmt.Sprint(whole),
		"THEN", t.Payload, "ELSE SUBSTR(", t.Payload, ", 1,", fmt.Sprint(min(whole, Sniffed)), ") END,", now, ", ''",
		"FROM", t.Name, l.Hint, "WHERE", l.Where, "AND", t.Due.Name, "<=", t.Due.FromExpr(now),
		"AND NOT", s.Dialect.OpensWith(t.Payload, PHPJob), l.Order, "LIMIT", fmt.Sprint(l.Limit)}, " ")
	if l.Cursor == nil {
		return reading
	}
	// The cursor comes first: what is committed after it was read is behind its Last. Its
	// columns are those of candidates, with the size -1.
	last, newest := s.Ends(l.Cursor.Known)
	return s.Dialect.UnionAll("SELECT id, '0', "+newest+", "+last+", 0, NULL, '', NULL, '', 0, 0, -1, '', "+now+
		", at FROM cmsjobs_cursors WHERE name = ?", reading)
}

// LastOfQueue selects the number of a queue's last row, -1 where it has none.
func (s *Tables) LastOfQueue() string {
	return "SELECT COALESCE(MAX(id), -1) FROM " + s.Layout.Table().Name + " WHERE queue = ?"
}

// Ends are expressions beside a row of cmsjobs_cursors, for Cursor.Last, with the queue as
// its parameter where the order is by id, and for Cursor.Newest. In the extended layout rows
// are claimed only when they were read, and nobody needs the latter.
//
// PostgreSQL reads only what is behind the cursor: else a look at a table whose rows were
// just deleted would go past all of them, until they are vacuumed. It compares with the
// cursor's column, not with a number, which the planner would look up at the index's other
// end, past deleted rows as well. MySQL knows the ends of an index without a look.
func (s *Tables) Ends(known int64) (last, newest string) {
	last, newest = s.LastOfQueue(), "SELECT COALESCE(MAX(id), -1) FROM "+s.Layout.Table().Name
	if s.Dialect.DeletedStay {
		last += " AND id > cmsjobs_cursors.id"
		newest += fmt.Sprintf(" WHERE id > GREATEST(cmsjobs_cursors.id, %d)", known)
	}
	if s.OrderedByTime() {
		last = "0"
	}
	if s.Layout.Name() == Extended {
		newest = "0"
	}
	return "(" + last + ")", "(" + newest + ")"
}

// arguments are those of Reading.
func (s *Tables) arguments(l CandidateQuery) []any {
	switch {
	case l.Cursor == nil:
		return l.Args
	case s.OrderedByTime():
		return append([]any{l.Cursor.Name}, l.Args...)
	}
	return append([]any{l.Cursor.Queue, l.Cursor.Name}, l.Args...)
}

// ReadCandidates returns due rows, and the database's now. No row is locked.
func (s *Tables) ReadCandidates(ctx context.Context, q Tx, l CandidateQuery) ([]*Candidate, int64, error) {
	var found []*Candidate
	var clock int64
	sighted := s.StartSighting()
	err := s.Query(ctx, q, func(r *sql.Rows) error {
		c := new(Candidate)
		var created sql.NullInt64
		var at string
		err := r.Scan(&c.ID, &c.At, &c.Due, &created, &c.Attempts, &c.Locked, &c.Status, &c.Token, &c.Name,
			&c.Priority, &c.MaxAttempts, &c.Size, &c.Payload, &clock, &at)
		if c.Size < 0 && l.Cursor != nil {
			l.Cursor.Found, l.Cursor.Is = true, RowPosition{At: at, ID: c.ID}
			l.Cursor.Last, l.Cursor.Newest = created.Int64, c.Due
			return err
		}
		c.Seen = clock
		c.Created = created.Int64
		found = append(found, c)
		return err
	}, s.Reading(l), s.arguments(l)...)
	if err != nil {
		return nil, 0, fmt.Errorf("looking for due jobs in %s: %w", s.Layout.Table().Plain, err)
	}
	if clock > 0 {
		sighted(time.Unix(clock, 0), time.Second)
	}
	return found, clock, nil
}
