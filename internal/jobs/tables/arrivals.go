package tables

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Arrival is a row of the jobs table as a look for new rows sees it.
type Arrival struct {
	ID    int64
	Queue string
	// Waiting says that nobody has claimed the row; it may be claimed Delay after
	// the look.
	Waiting bool
	Delay   time.Duration
}

// Arrivals lists the rows with numbers above after, the first by number, at most
// limit. It reads nothing but these rows, whatever waits in the table: an index
// says that there are none. Rows that were committed out of their order, and rows
// that became due, are not among them.
func (s *Tables) Arrivals(ctx context.Context, after int64, limit int) ([]Arrival, error) {
	t := s.Layout.Table()
	var found []Arrival
	err := s.Query(ctx, s.DB, func(r *sql.Rows) error {
		var a Arrival
		var due, now sql.NullInt64
		if err := r.Scan(&a.ID, &a.Queue, &due, &now); err != nil {
			return err
		}
		if a.Waiting = due.Valid; a.Waiting {
			a.Delay = max(0, time.Duration(due.Int64*1000-now.Int64)*time.Millisecond)
		}
		found = append(found, a)
		return nil
	}, fmt.Sprintf("SELECT id, queue, CASE WHEN %s THEN %s END, %s FROM %s WHERE id > ? ORDER BY id LIMIT %d",
		s.Layout.Waiting(), t.Due.Seconds(), s.MillisNow(), t.Name, limit), after)
	if err != nil {
		return nil, fmt.Errorf("looking for new jobs in %s: %w", t.Plain, err)
	}
	return found, nil
}

// LastNumber is the highest number of a row; 0 where there is none.
func (s *Tables) LastNumber(ctx context.Context) (last int64, err error) {
	if _, err = s.QueryRow(ctx, s.DB, []any{&last}, "SELECT COALESCE(MAX(id), 0) FROM "+
		s.Layout.Table().Name); err != nil {
		return 0, fmt.Errorf("reading the newest row of %s: %w", s.Layout.Table().Plain, err)
	}
	return last, nil
}
