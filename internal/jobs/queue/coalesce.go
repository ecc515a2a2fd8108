package queue

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// How many equal jobs one run stands for at most, and how many rows behind the
// first are looked at to find them.
const (
	maxDuplicates   = 2000
	duplicateWindow = 5000
)

// addDuplicates finds waiting due jobs that are equal to primary.
func (s *Store) addDuplicates(ctx context.Context, queue string, primary *tables.Candidate) error {
	have := map[int64]bool{primary.ID: true}
	for _, t := range primary.Duplicates {
		have[t.ID] = true
	}
	l := &scanCursor{queue: queue, priority: primary.Priority}
	from := tables.RowPosition{At: primary.At, ID: primary.ID}
	if primary.Rescued { // it stands anywhere in the order
		from = tables.RowPosition{}
	}
	end, err := s.window(ctx, l, from)
	if err != nil {
		return err
	}
	named, args := s.tables.Layout.Table().Payload+" LIKE ?", []any{"%" + typePattern(primary.Job.Type) + "%"}
	if s.tables.Layout.Name() == tables.Extended {
		named, args = "(name = ? OR "+named+")", append([]any{primary.Job.Type}, args...)
	}
	look := s.between(l, from, end, s.tables.Layout.Waiting()+" AND "+named, maxDuplicates)
	look.Args = append(look.Args, args...)
	found, _, err := s.tables.ReadCandidates(ctx, s.tables.DB, look)
	if err != nil {
		return err
	}
	work := primary.DedupKey()
	for _, x := range found {
		if !have[x.ID] && len(primary.Duplicates) < maxDuplicates && s.tables.Claimable(queue, x) && x.Fault == nil &&
			x.DedupKey() == work {
			primary.Duplicates = append(primary.Duplicates, x)
		}
	}
	return nil
}

// typePattern is the type without what a LIKE or a JSON writer may spell
// otherwise.
func typePattern(jobType string) string {
	out := []rune(jobType)
	for i, r := range out {
		if r == '%' || r == '\\' || r == '/' || r > 126 {
			out[i] = '_'
		}
	}
	return string(out)
}

// window is the position duplicateWindow rows behind from; zero is the end.
func (s *Store) window(ctx context.Context, l *scanCursor, from tables.RowPosition) (tables.RowPosition, error) {
	a, args := s.tables.After(from)
	t := s.tables.Layout.Table()
	at := "''"
	if s.tables.OrderedByTime() {
		at = t.Due.ExactText()
	}
	var p tables.RowPosition
	_, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&p.At, &p.ID}, "SELECT "+at+", id FROM "+t.Name+
		s.tables.IndexHint()+" WHERE queue = ?"+s.tables.Layout.Class(l.priority)+a+
		" AND "+s.tables.Layout.Waiting()+s.tables.OrderBy()+fmt.Sprintf(" LIMIT 1 OFFSET %d", duplicateWindow),
		append([]any{l.queue}, args...)...)
	return p, err
}
