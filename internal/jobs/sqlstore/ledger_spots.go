package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The history is listed by when runs ended, then by number, both downwards.
// Three indexes lead in that order: by outcome, by kind and by queue. A list
// takes the one that suits its filter, reads places of rows for each value of
// the index's first column, merges them, and only then reads rows. What no
// index decides is searched for, a stretch at a time.

// spot is the place of a run in the history.
type spot struct{ ended, id int64 }

// newer orders spots, newest first.
func newer(a, b spot) int { return cmp.Or(cmp.Compare(b.ended, a.ended), cmp.Compare(b.id, a.id)) }

func (p spot) position() position64 { return position64{key: p.id, ended: p.ended} }

// stretch is a part of the history: the spots that match, the last place that
// was looked at, and whether there is nothing behind it.
type stretch struct {
	spots []spot
	last  position64
	end   bool
}

// legs are the parts of an index in which a filter's runs lie.
type legs struct {
	column string
	parts  []conditions
	rest   conditions // what the index does not decide
	period conditions
}

// maxLegs bounds how many values of an index's first column are read apart.
const maxLegs = 16

// legsOf chooses the index. Few runs are cancelled, most are completed: so kind
// and queue lead where completed ones are asked for.
func (s *Store) legsOf(f jobs.Filter, wanted []string) legs {
	all := map[string][]string{"uuid": f.UUIDs, "outcome": wanted, "kind": s.spellings(f.Kinds), "queue": f.Queues}
	l := legs{column: "outcome"}
	for _, column := range []string{"queue", "kind", "uuid"} {
		if len(all[column]) > 0 && (column == "uuid" || slices.Contains(wanted, jobs.Completed.String())) {
			l.column = column
		}
	}
	if values := all[l.column]; len(values) <= maxLegs && l.column != "uuid" {
		for _, v := range values {
			l.parts = append(l.parts, conditions{[]string{l.column + " = ?"}, []any{v}})
		}
	} else {
		l.parts = make([]conditions, 1)
		l.parts[0].in(l.column, values)
	}
	for _, column := range []string{"outcome", "kind", "queue"} {
		if everything := column == "outcome" && len(wanted) == len(outcomes); column != l.column && !everything {
			l.rest.in(column, all[column])
		}
	}
	if f.Text != "" {
		part, args := s.like(f.Text, "data", "error")
		l.rest.add(part, args...)
	}
	if !f.Since.IsZero() {
		l.period.add(fmt.Sprintf("ended_at >= %d", f.Since.UnixMilli()))
	}
	if !f.Until.IsZero() {
		l.period.add(fmt.Sprintf("ended_at < %d", f.Until.UnixMilli()))
	}
	return l
}

// readSpots finds up to limit runs of the wanted outcomes behind a position,
// newest first. It looks at most at maxLooked places of each leg.
func (s *Store) readSpots(ctx context.Context, f jobs.Filter, wanted []string, from position64, limit int) (stretch, error) {
	l := s.legsOf(f, wanted)
	out := stretch{last: from}
	for looked := 0; looked < maxLooked; looked += stretchRows {
		var floor *spot
		if len(l.rest.parts) > 0 && l.column != "uuid" {
			var err error
			if floor, err = s.floor(ctx, l, out.last); err != nil {
				return out, err
			}
		}
		var met []spot
		for _, part := range l.parts {
			list, err := s.spots(ctx, l, part, out.last, floor, limit-len(out.spots)+1, 0)
			if err != nil {
				return out, err
			}
			met = append(met, list...)
		}
		slices.SortFunc(met, newer)
		if room := limit - len(out.spots); len(met) > room {
			out.spots = append(out.spots, met[:room]...)
			out.last = out.spots[limit-1].position()
			return out, nil
		}
		out.spots = append(out.spots, met...)
		if floor == nil {
			out.end = true
			return out, nil
		}
		out.last = floor.position()
	}
	return out, nil
}

// floor is how far down all legs are looked at in one step: to the newest of
// the places that lie stretchRows deep. It is nil where every leg ends before.
func (s *Store) floor(ctx context.Context, l legs, from position64) (*spot, error) {
	l.rest = conditions{}
	var floor *spot
	for _, part := range l.parts {
		list, err := s.spots(ctx, l, part, from, nil, 1, stretchRows-1)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && (floor == nil || newer(list[0], *floor) < 0) {
			floor = &list[0]
		}
	}
	return floor, nil
}

// spots reads the places of one leg below a position, down to a floor.
func (s *Store) spots(ctx context.Context, l legs, part conditions, from position64, floor *spot, limit, skip int) ([]spot, error) {
	c := conditions{slices.Clone(part.parts), slices.Clone(part.args)}
	if from.key > 0 {
		c.add(fmt.Sprintf("ended_at <= %d AND NOT (ended_at = %d AND id >= %d)", from.ended, from.ended, from.key))
	}
	if floor != nil {
		c.add(fmt.Sprintf("ended_at >= %d AND NOT (ended_at = %d AND id < %d)", floor.ended, floor.ended, floor.id))
	}
	for _, more := range []conditions{l.period, l.rest} {
		c.parts, c.args = append(c.parts, more.parts...), append(c.args, more.args...)
	}
	var list []spot
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var x spot
		err := r.Scan(&x.ended, &x.id)
		list = append(list, x)
		return err
	}, fmt.Sprintf("SELECT ended_at, id FROM cmsjobs_runs%s WHERE %s ORDER BY ended_at DESC, id DESC LIMIT %d OFFSET %d", s.runsHint(l.column), c, limit, skip), c.args...)
	if err != nil {
		return nil, fmt.Errorf("looking through the history of runs: %w", err)
	}
	return list, nil
}

// runsAt reads the runs of spots, in their order; one that was deleted in the
// meantime is left out.
func (s *Store) runsAt(ctx context.Context, spots []spot) ([]storedRun, error) {
	if len(spots) == 0 {
		return nil, nil
	}
	in, args := s.d.in("id", each(spots, func(x spot) int64 { return x.id }))
	return s.queryRuns(ctx, in, args, " ORDER BY ended_at DESC, id DESC", len(spots))
}
