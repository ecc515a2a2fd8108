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

// process goes through candidates in their order, takes what can run here, and
// says how many it is done with.
func (c *claim) process(ctx context.Context, queue string, found []*tables.Candidate, now int64) (passed int,
	err error) {
	c.pages++
	rescues := c.rescues(ctx)
	for passed < len(found) && c.want() > 0 && !c.stopped {
		chosen, read, err := c.choose(ctx, queue, found[passed:], rescues)
		if err != nil {
			return passed, err
		}
		if len(chosen) == 0 {
			return passed + read, nil
		}
		taken, err := c.s.claimRows(ctx, c, chosen, now)
		if err != nil {
			return passed, err
		}
		passed += read
		c.taken = append(c.taken, taken...)
		c.beaten = c.beaten || len(taken) < len(chosen)
	}
	return passed, nil
}

// choose picks the rows to claim, as many as the claim wants, each with its
// duplicates. read is how many of the candidates it is done with.
func (c *claim) choose(
	ctx context.Context, queue string, found []*tables.Candidate, rescues func(*tables.Candidate) (bool, error),
) (chosen []*tables.Candidate, read int, err error) {
	primaries := map[string]*tables.Candidate{} // of coalescing types, by work
	for ; read < len(found) && len(chosen) < c.want(); read++ {
		x := found[read]
		x.Duplicates = nil // of an earlier try
		ok, err := c.mayClaim(ctx, queue, x, rescues)
		if err != nil {
			return nil, 0, err
		}
		if ok && c.tooEarly(x, len(c.taken)+len(chosen)) {
			c.stopped = true
			break
		}
		if ok && !isDuplicate(x, primaries) {
			chosen = append(chosen, x)
		}
	}
	for _, primary := range primaries {
		if err := c.s.addDuplicates(ctx, queue, primary); err != nil {
			return nil, 0, err
		}
	}
	return chosen, read, nil
}

// tooEarly says that x is not claimed ahead of a free slot, as the one after so
// many others: it may be started only once more, and a process that dies would
// take that start from it, or the payloads of those before it are as much as the
// process may hold.
func (c *claim) tooEarly(x *tables.Candidate, before int) bool {
	if before < c.r.Limit-c.r.Ahead {
		return false
	}
	c.aheadBytes += int64(len(x.Payload))
	return c.aheadBytes > c.r.AheadBytes || x.Fault == nil && x.Job.Last()
}

// mayClaim says whether a candidate is ours, its lease may be taken over, and its
// type's limit lets it run.
func (c *claim) mayClaim(
	ctx context.Context, queue string, x *tables.Candidate, rescues func(*tables.Candidate) (bool, error),
) (bool, error) {
	if c.absorbed[x.ID] || !c.s.tables.Claimable(queue, x) {
		return false, nil
	}
	if ok, err := rescues(x); err != nil || !ok {
		return false, err
	}
	return c.permitted(ctx, x)
}

// isDuplicate adds x to the duplicates of the primary that does the same work, or
// notes x as such a primary.
func isDuplicate(x *tables.Candidate, primaries map[string]*tables.Candidate) bool {
	if !x.Policy.Coalesce || x.Fault != nil {
		return false
	}
	work := x.DedupKey()
	if primary, there := primaries[work]; there {
		primary.Duplicates = append(primary.Duplicates, x)
		return true
	}
	primaries[work] = x
	return false
}

// rescues says of the candidates of one look whether they may be taken as far
// as their leases go. It asks the database once, and only where a lease has run
// out.
func (c *claim) rescues(ctx context.Context) func(*tables.Candidate) (bool, error) {
	asked, may := false, false
	return func(x *tables.Candidate) (bool, error) {
		if !x.Rescued {
			return true, nil
		}
		var err error
		if !asked {
			asked = true
			may, err = c.s.tables.MayRescue(ctx)
		}
		return may, err
	}
}

// addDuplicates finds waiting due jobs that are equal to primary.
func (s *Store) addDuplicates(ctx context.Context, queue string, primary *tables.Candidate) error {
	have := map[int64]bool{primary.ID: true}
	for _, t := range primary.Duplicates {
		have[t.ID] = true
	}
	l := &scanCursor{queue: queue, priority: primary.Priority}
	from := tables.RowPosition{At: primary.At, ID: primary.ID}
	if primary.Rescued || primary.Sent { // it stands anywhere in the order, or nobody has read where
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
