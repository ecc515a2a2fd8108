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

const (
	// sniffed is how much of an oversized payload is read to name its type.
	sniffed = 64 << 10
	// oversize leaves room for the envelope around the largest payload that
	// Enqueue takes.
	oversize = jobs.MaxPayload + 4<<10
	// phpJob stands in the opening of the payloads of Laravel's own
	// job classes. Rows with it are not even read; for all others Go decides.
	phpJob = `"job":"Illuminate`
)

// RowPosition is a place in a lane's order; the zero value is before the first.
type RowPosition struct {
	at string // moment.text of the due column; unused when the order is by id
	id int64
}

// OrderedByTime says that the lane's order is (due, id) and not id.
func (s *Tables) OrderedByTime() bool {
	return s.Layout.Name() == Extended || s.Layout.Table().ordered != ""
}

// IndexHint names the index that serves the order, as the optimizer, seeing few
// rows in one moment and millions in the next, now and then sorts the table.
func (s *Tables) IndexHint() string {
	t := s.Layout.Table()
	if s.Dialect.Name != "mysql" {
		return ""
	}
	switch {
	case t.ordered != "":
		return " FORCE INDEX (" + s.Dialect.Ident(t.ordered) + ")"
	case t.byQueue != "":
		return " FORCE INDEX (" + s.Dialect.Ident(t.byQueue) + ")"
	case s.Layout.Name() == Stock:
		return " FORCE INDEX (PRIMARY)"
	}
	return ""
}

func (s *Tables) OrderBy() string {
	if s.OrderedByTime() {
		return " ORDER BY " + s.Layout.Table().due.name + ", id"
	}
	return " ORDER BY id"
}

// after and upTo bound a read in the lane's order.
func (s *Tables) after(p RowPosition) (string, []any) {
	switch {
	case p == RowPosition{}:
		return "", nil
	case !s.OrderedByTime():
		return fmt.Sprintf(" AND id > %d", p.id), nil
	}
	due := s.Layout.Table().due
	literal, args := due.fromText(p.at)
	return fmt.Sprintf(" AND %s >= %s AND NOT (%s = %s AND id <= %d)", due.name, literal, due.name, literal, p.id), twice(args)
}

func (s *Tables) upTo(p RowPosition) (string, []any) {
	switch {
	case p == RowPosition{}:
		return "", nil
	case !s.OrderedByTime():
		return fmt.Sprintf(" AND id <= %d", p.id), nil
	}
	due := s.Layout.Table().due
	literal, args := due.fromText(p.at)
	return fmt.Sprintf(" AND %s <= %s AND NOT (%s = %s AND id > %d)", due.name, literal, due.name, literal, p.id), twice(args)
}

func twice(args []any) []any { return append(append([]any{}, args...), args...) }

// CandidateQuery reads candidates.
type CandidateQuery struct {
	where string // beside the prefilter and "due"
	args  []any
	order string
	hint  string
	limit int
	whole int // up to how many bytes payloads are read whole; 0 is oversize
}

// reading is the statement of a look.
func (s *Tables) reading(l CandidateQuery) string {
	t := s.Layout.Table()
	now, whole := s.SecondsNow(), cmp.Or(l.whole, oversize)
	return strings.Join([]string{"SELECT id,", t.due.exactText(), ",", t.due.seconds(), ",", t.created.seconds(), ", attempts,", t.locked.seconds(), ",", s.Layout.columns(), ",",
		s.Dialect.Bytes, "(", t.payload, "), CASE WHEN", s.Dialect.Bytes, "(", t.payload, ") <=", fmt.Sprint(whole), "THEN", t.payload, "ELSE SUBSTR(", t.payload, ", 1,", fmt.Sprint(min(whole, sniffed)), ") END,", now,
		"FROM", t.name, l.hint, "WHERE", l.where, "AND", t.due.name, "<=", t.due.fromExpr(now),
		"AND NOT", s.Dialect.OpensWith(t.payload, phpJob), l.order, "LIMIT", fmt.Sprint(l.limit)}, " ")
}

// ReadCandidates returns due rows, and the database's now. No row is locked.
func (s *Tables) ReadCandidates(ctx context.Context, q Tx, l CandidateQuery) ([]*Candidate, int64, error) {
	var found []*Candidate
	var clock int64
	sighted := s.startSighting()
	err := s.query(ctx, q, func(r *sql.Rows) error {
		c := new(Candidate)
		var created sql.NullInt64
		err := r.Scan(&c.id, &c.at, &c.due, &created, &c.attempts, &c.locked, &c.status, &c.token, &c.name, &c.priority, &c.MaxAttempts, &c.size, &c.payload, &clock)
		c.seen = clock
		c.created = created.Int64
		found = append(found, c)
		return err
	}, s.reading(l), l.args...)
	if err != nil {
		return nil, 0, fmt.Errorf("looking for due jobs in %s: %w", s.Layout.Table().plain, err)
	}
	if len(found) > 0 {
		sighted(time.Unix(clock, 0), time.Second)
	}
	return found, clock, nil
}
