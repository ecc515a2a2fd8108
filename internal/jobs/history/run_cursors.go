package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The history is listed by when runs ended, then by number, both downwards.
// Three indexes lead in that order: by outcome, by type and by queue. A list
// takes the one that suits its filter, reads places of rows for each value of
// the index's first column, merges them, and only then reads rows. What no
// index decides is searched for, a stretch at a time.

// runCursor is the place of a run in the history.
type runCursor struct{ ended, id int64 }

// newer orders run cursors, newest first.
func newer(a, b runCursor) int { return cmp.Or(cmp.Compare(b.ended, a.ended), cmp.Compare(b.id, a.id)) }

func (p runCursor) position() keysetCursor { return keysetCursor{key: p.id, ended: p.ended} }

// runPage is a part of the history: the run cursors that match, the last place that
// was looked at, and whether there is nothing behind it.
type runPage struct {
	runCursors []runCursor
	last       keysetCursor
	end        bool
}

// indexScans are the parts of an index in which a filter's runs lie.
type indexScans struct {
	column string
	parts  []conditions
	rest   conditions // what the index does not decide
	period conditions
}

// maxIndexScans bounds how many values of an index's first column are read apart.
const maxIndexScans = 16

// indexScansOf chooses the index. Few runs are cancelled, most are completed: so type
// and queue lead where completed ones are asked for.
func (s *Store) indexScansOf(f jobs.Filter, wanted []string) indexScans {
	all := map[string][]string{"uuid": f.UUIDs, "outcome": wanted, "type": s.spellings(f.Types), "queue": f.Queues}
	l := indexScans{column: "outcome"}
	for _, column := range []string{"queue", "type", "uuid"} {
		if len(all[column]) > 0 && (column == "uuid" || slices.Contains(wanted, jobs.Completed.String())) {
			l.column = column
		}
	}
	if values := all[l.column]; len(values) <= maxIndexScans && l.column != "uuid" {
		for _, v := range values {
			l.parts = append(l.parts, conditions{[]string{l.column + " = ?"}, []any{v}})
		}
	} else {
		l.parts = make([]conditions, 1)
		l.parts[0].in(l.column, values)
	}
	for _, column := range []string{"outcome", "type", "queue"} {
		if everything := column == "outcome" && len(wanted) == len(outcomes); column != l.column && !everything {
			l.rest.in(column, all[column])
		}
	}
	l.rest.notIn("type", f.Silenced)
	if f.Text != "" {
		part, args := s.like(f.Text, "data", "error")
		l.rest.add(part, args...)
	}
	s.ranBy(&l.rest, f)
	if !f.Since.IsZero() {
		l.period.add(fmt.Sprintf("ended_at >= %d", f.Since.UnixMilli()))
	}
	if !f.Until.IsZero() {
		l.period.add(fmt.Sprintf("ended_at < %d", f.Until.UnixMilli()))
	}
	return l
}

// findRuns finds up to limit runs of the wanted outcomes behind a position,
// newest first. It looks at most at maxLooked places of each index scan.
func (s *Store) findRuns(ctx context.Context, f jobs.Filter, wanted []string, from keysetCursor, limit int) (runPage,
	error) {
	l := s.indexScansOf(f, wanted)
	out := runPage{last: from}
	for looked := 0; looked < maxLooked; looked += scanBatch {
		var lowerBound *runCursor
		if len(l.rest.parts) > 0 && l.column != "uuid" {
			var err error
			if lowerBound, err = s.lowerBound(ctx, l, out.last); err != nil {
				return out, err
			}
		}
		var met []runCursor
		for _, part := range l.parts {
			list, err := s.runCursors(ctx, l, part, out.last, lowerBound, limit-len(out.runCursors)+1, 0)
			if err != nil {
				return out, err
			}
			met = append(met, list...)
		}
		slices.SortFunc(met, newer)
		if left := limit - len(out.runCursors); len(met) > left {
			out.runCursors = append(out.runCursors, met[:left]...)
			out.last = out.runCursors[limit-1].position()
			return out, nil
		}
		out.runCursors = append(out.runCursors, met...)
		if lowerBound == nil {
			out.end = true
			return out, nil
		}
		out.last = lowerBound.position()
	}
	return out, nil
}

// lowerBound is how far down all index scans read in one step: to the newest of
// the places that lie stretchRows deep. It is nil where every index scan ends before.
func (s *Store) lowerBound(ctx context.Context, l indexScans, from keysetCursor) (*runCursor, error) {
	l.rest = conditions{}
	var lowerBound *runCursor
	for _, part := range l.parts {
		list, err := s.runCursors(ctx, l, part, from, nil, 1, scanBatch-1)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && (lowerBound == nil || newer(list[0], *lowerBound) < 0) {
			lowerBound = &list[0]
		}
	}
	return lowerBound, nil
}

// runCursors reads the places of one index scan below a position, down to a lower
// bound.
func (s *Store) runCursors(ctx context.Context, l indexScans, part conditions, from keysetCursor,
	lowerBound *runCursor, limit, skip int) ([]runCursor, error) {
	c := conditions{slices.Clone(part.parts), slices.Clone(part.args)}
	if from.key > 0 {
		c.add(fmt.Sprintf("ended_at <= %d AND NOT (ended_at = %d AND id >= %d)", from.ended, from.ended, from.key))
	}
	if lowerBound != nil {
		c.add(fmt.Sprintf("ended_at >= %d AND NOT (ended_at = %d AND id < %d)", lowerBound.ended, lowerBound.ended,
			lowerBound.id))
	}
	for _, more := range []conditions{l.period, l.rest} {
		c.parts, c.args = append(c.parts, more.parts...), append(c.args, more.args...)
	}
	var list []runCursor
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var x runCursor
		err := r.Scan(&x.ended, &x.id)
		list = append(list, x)
		return err
	}, fmt.Sprintf(
		"SELECT ended_at, id FROM cmsjobs_runs%s WHERE %s ORDER BY ended_at DESC, id DESC LIMIT %d OFFSET %d",
		s.runsHint(l.column), c, limit, skip), c.args...)
	if err != nil {
		return nil, fmt.Errorf("looking through the history of runs: %w", err)
	}
	return list, nil
}
