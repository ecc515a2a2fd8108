package queue

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// process goes through candidates in their order, takes what can run here, and
// says how many it is done with.
func (c *claim) process(ctx context.Context, queue string, found []*tables.Candidate, now int64) (passed int, err error) {
	c.pages++
	rescues := c.rescues(ctx)
	for passed < len(found) && c.want() > 0 {
		var chosen []*tables.Candidate
		leaders := map[string]*tables.Candidate{} // of coalescing types, by work
		start := passed
		for ; passed < len(found) && len(chosen) < c.want(); passed++ {
			x := found[passed]
			x.Duplicates = nil // of an earlier try
			if c.absorbed[x.ID] || !c.s.tables.Claimable(queue, x) {
				continue
			}
			if ok, err := rescues(x); err != nil {
				return start, err
			} else if !ok {
				continue
			}
			if ok, err := c.permitted(ctx, queue, x); err != nil {
				return start, err
			} else if !ok {
				continue
			}
			if x.Policy.Coalesce && x.Fault == nil {
				work := x.DedupKey()
				if primary, duplicate := leaders[work]; duplicate {
					primary.Duplicates = append(primary.Duplicates, x)
					continue
				}
				leaders[work] = x
			}
			chosen = append(chosen, x)
		}
		for _, primary := range leaders {
			if err := c.s.addDuplicates(ctx, queue, primary); err != nil {
				return start, err
			}
		}
		if len(chosen) == 0 {
			return passed, nil
		}
		taken, err := c.s.claimRows(ctx, c, chosen, now)
		if err != nil {
			return start, err
		}
		c.taken = append(c.taken, taken...)
	}
	return passed, nil
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
