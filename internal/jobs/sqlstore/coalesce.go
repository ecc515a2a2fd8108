package sqlstore

import (
	"context"
	"fmt"
)

// How many equal jobs one run stands for at most, and how many rows behind the
// first are looked at to find them.
const (
	maxDuplicates   = 2000
	duplicateWindow = 5000
)

// addDuplicates finds waiting due jobs that are equal to leader.
func (s *Store) addDuplicates(ctx context.Context, queue string, primary *Candidate) error {
	have := map[int64]bool{primary.id: true}
	for _, t := range primary.duplicates {
		have[t.id] = true
	}
	l := &scanCursor{queue: queue, priority: primary.priority}
	from := RowPosition{primary.at, primary.id}
	if primary.rescued { // it stands anywhere in the order
		from = RowPosition{}
	}
	end, err := s.window(ctx, l, from)
	if err != nil {
		return err
	}
	named, args := s.Layout.Table().payload+" LIKE ?", []any{"%" + kindPattern(primary.job.Type) + "%"}
	if s.Layout.Name() == Extended {
		named, args = "(name = ? OR "+named+")", append([]any{primary.job.Type}, args...)
	}
	look := s.inLane(l, from, end, s.Layout.waiting()+" AND "+named, maxDuplicates)
	look.args = append(look.args, args...)
	found, _, err := s.ReadCandidates(ctx, s.db, look)
	if err != nil {
		return err
	}
	work := primary.dedupKey()
	for _, x := range found {
		if !have[x.id] && len(primary.duplicates) < maxDuplicates && s.claimable(queue, x) && x.fault == nil && x.dedupKey() == work {
			primary.duplicates = append(primary.duplicates, x)
		}
	}
	return nil
}

// kindPattern is the type without what a LIKE or a JSON writer may spell
// otherwise.
func kindPattern(kind string) string {
	out := []rune(kind)
	for i, r := range out {
		if r == '%' || r == '\\' || r == '/' || r > 126 {
			out[i] = '_'
		}
	}
	return string(out)
}

// window is the position twinWindow rows behind from; zero is the end.
func (s *Store) window(ctx context.Context, l *scanCursor, from RowPosition) (RowPosition, error) {
	a, args := s.after(from)
	t := s.Layout.Table()
	at := "''"
	if s.OrderedByTime() {
		at = t.due.exactText()
	}
	var p RowPosition
	_, err := s.QueryRow(ctx, s.db, []any{&p.at, &p.id}, "SELECT "+at+", id FROM "+t.name+s.IndexHint()+" WHERE queue = ?"+s.Layout.class(l.priority)+a+
		" AND "+s.Layout.waiting()+s.OrderBy()+fmt.Sprintf(" LIMIT 1 OFFSET %d", duplicateWindow), append([]any{l.queue}, args...)...)
	return p, err
}
