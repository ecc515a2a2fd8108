package phprows

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

const (
	// pageRows are read at once, and maxPages by one claim: rows between them may be
	// others'. The next claim goes on behind them.
	pageRows, maxPages = 200, 10
	// waitRows are read at once to know how long jobs wait.
	waitRows = 20
	// maxClaimed bounds the payloads of one claim, in bytes.
	maxClaimed = 16 << 20
	// sniffed is how much is read of a larger payload before it is claimed.
	sniffed = 64 << 10
	// rest is how many times as long as it took a look at all rows waits for the
	// next: rows behind the last known one are looked at in between.
	rest = 20
	// cheap is a look at all rows that may come each time.
	cheap = 2 * time.Millisecond
)

// look is how far the looks at a queue are.
type look struct {
	alone  chan struct{} // one claim of a queue at a time
	resume tables.RowPosition
	// floor is the row up to which the last look at all rows saw everything; next is
	// when all are looked at again, of Options.Clock.
	floor int64
	next  time.Time
	// paused is what paused saw when it asked.
	paused bool
	asked  time.Time // of Options.Clock
}

func (s *Store) lookOf(queue string) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursors[queue] == nil {
		s.cursors[queue] = &look{alone: make(chan struct{}, 1)}
	}
	return s.cursors[queue]
}

// find reads up to n rows of PHP's that may be claimed. jobs.ErrUnseen says that
// there is more to look at.
func (s *Store) find(ctx context.Context, l *look, queue string, n int) (found []*row, now int64, err error) {
	begun := s.Options.Clock()
	from, all := l.resume, l.resume == tables.RowPosition{}
	if all && !s.OrderedByTime() && begun.Before(l.next) {
		from, all = tables.RowPosition{ID: l.floor}, false
	}
	newest := int64(0)
	if all && !s.OrderedByTime() {
		if _, err = s.QueryRow(ctx, s.DB, []any{&newest}, "SELECT COALESCE(MAX(id), 0) FROM "+s.Layout.Table().Name+
			" WHERE queue = ?", queue); err != nil {
			return nil, 0, fmt.Errorf("looking for jobs of PHP: %w", err)
		}
	}
	l.resume = tables.RowPosition{}
	found, now, ended, err := s.walk(ctx, l, queue, from, n)
	if err == nil && ended && all {
		l.floor = newest
		if took := s.Options.Clock().Sub(begun); took > cheap {
			l.next = s.Options.Clock().Add(rest * took)
		}
	}
	return found, now, err
}

// walk reads pages behind a position until it has n rows, or enough bytes, or has
// read its share; ended says that there was nothing more.
func (s *Store) walk(ctx context.Context, l *look, queue string, from tables.RowPosition, n int) (found []*row,
	now int64, ended bool, err error) {
	bytes := int64(0)
	for range maxPages {
		limit := pageRows
		if now == 0 { // the first page: most of the time all rows are PHP's
			limit = min(n, pageRows)
		}
		rows, clock, err := s.page(ctx, queue, from, limit)
		if err != nil {
			return nil, 0, false, fmt.Errorf("looking for jobs of PHP: %w", err)
		}
		now = clock
		for _, r := range rows {
			from = tables.RowPosition{At: r.At, ID: r.ID}
			if !s.ours(r) {
				continue
			}
			if found, bytes = append(found, r), bytes+r.Size; len(found) == n || bytes >= maxClaimed {
				return found, now, false, nil
			}
		}
		if len(rows) < limit {
			return found, now, true, nil
		}
	}
	l.resume = from
	return found, now, false, jobs.ErrUnseen
}

// ours says whether a row is for the pool: PHP's, and no type of ours.
func (s *Store) ours(r *row) bool {
	var named bool
	r.envelope, named = readEnvelope(r.Payload, r.whole)
	return named && !s.Known(r.envelope.Job)
}

// Waits implements php.Source.
func (s *Store) Waits(ctx context.Context, queue string) (longest time.Duration, err error) {
	var from tables.RowPosition
	for range maxPages {
		rows, now, err := s.page(ctx, queue, from, waitRows)
		if err != nil {
			return 0, fmt.Errorf("looking for the oldest job of PHP: %w", s.NoteTrouble(err))
		}
		for _, r := range rows {
			from = tables.RowPosition{At: r.At, ID: r.ID}
			if s.ours(r) {
				longest = max(longest, time.Duration(now-r.Due)*time.Second)
			}
		}
		if longest > 0 || len(rows) < waitRows {
			return longest, nil
		}
	}
	return 0, nil
}

// page reads up to limit rows that wait or whose lease has run out, behind a position.
func (s *Store) page(ctx context.Context, queue string, from tables.RowPosition, limit int) (rows []*row, now int64,
	err error) {
	t := s.Layout.Table()
	clock := s.SecondsNow()
	after, args := s.After(from)
	statement := strings.Join([]string{"SELECT id,", t.Due.ExactText(), ",", t.Due.Seconds(), ",", t.Created.Seconds(),
		", attempts,", t.Locked.Seconds(), ",",
		s.Dialect.Bytes, "(", t.Payload, "), CASE WHEN", s.Dialect.Bytes, "(", t.Payload, ") <=", fmt.Sprint(sniffed),
		"THEN", t.Payload,
		"ELSE SUBSTR(", t.Payload, ", 1,", fmt.Sprint(sniffed), ") END,", clock, "FROM", t.Name, s.IndexHint(),
		"WHERE queue = ? AND (", s.Layout.Waiting(), "OR",
		s.Layout.Expired(clock, s.RetryAfter), ") AND", t.Due.Name, "<=", t.Due.FromExpr(clock), after, s.OrderBy(),
		"LIMIT", fmt.Sprint(limit)}, " ")
	sighted := s.StartSighting()
	err = s.Query(ctx, s.DB, func(q *sql.Rows) error {
		r := new(row)
		var created sql.NullInt64
		err := q.Scan(&r.ID, &r.At, &r.Due, &created, &r.Attempts, &r.Locked, &r.Size, &r.Payload, &now)
		r.Created, r.Seen, r.whole, r.Rescued = created.Int64, now, r.Size <= sniffed, r.Locked.Valid
		rows = append(rows, r)
		return err
	}, statement, append([]any{queue}, args...)...)
	if err == nil && len(rows) > 0 {
		sighted(time.Unix(now, 0), time.Second)
	}
	return rows, now, err
}
