package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// errContended says that some of the candidates are no longer as they were
// read: the transaction is undone and fewer are tried.
var errContended = errors.New("another worker was faster")

// take makes the chosen rows this worker's, in one committed transaction, and
// returns those that it got.
func (s *Store) take(ctx context.Context, c *claim, chosen []*candidate, now int64) ([]jobs.Claimed, error) {
	rows := flatten(chosen)
	until := s.leaseMark(now, int64(c.r.Lease.Seconds()))
	var got map[int64]bool
	var err error
	if s.mode == Skip && len(rows) > 1 && s.maxBatch > 1 {
		got, err = s.takeSkipping(ctx, c, rows, until)
	} else {
		got, err = s.takeUnchanged(ctx, c, rows, until)
	}
	if err != nil {
		return nil, s.unanswered(c, rows, until, err)
	}
	taken := make([]jobs.Claimed, 0, len(chosen))
	for _, x := range chosen {
		if lead, twins := won(x, got); lead != nil {
			taken = append(taken, c.claimed(lead, twins, until))
		}
	}
	return taken, nil
}

// flatten lists rows and their twins by id, the order in which they are locked.
func flatten(chosen []*candidate) []*candidate {
	rows := make([]*candidate, 0, len(chosen))
	for _, x := range chosen {
		x.leader = x.id
		rows = append(rows, x)
		for _, twin := range x.twins {
			twin.leader = x.id
			rows = append(rows, twin)
		}
	}
	slices.SortFunc(rows, func(a, b *candidate) int { return cmp.Compare(a.id, b.id) })
	return rows
}

func ids(rows []*candidate) []int64 {
	list := make([]int64, len(rows))
	for i, x := range rows {
		list[i] = x.id
	}
	return list
}

// crowdedFor is for how many claims rows are locked at once, and no spares are
// used, after another claimer was met.
const crowdedFor = 32

// takeSkipping first tries without the lock, which saves a statement where
// nobody else claims from the table at this moment.
func (s *Store) takeSkipping(ctx context.Context, c *claim, rows []*candidate, until int64) (map[int64]bool, error) {
	if s.crowded > 0 {
		s.crowded--
		return s.takeLocked(ctx, c, rows, until)
	}
	got := map[int64]bool{}
	err := s.takeAll(ctx, c, rows, until, got)
	if err == nil || !errors.Is(err, errContended) {
		return got, err
	}
	s.crowded = crowdedFor
	return s.takeLocked(ctx, c, rows, until)
}

// takeLocked steps over rows that others hold.
func (s *Store) takeLocked(ctx context.Context, c *claim, rows []*candidate, until int64) (map[int64]bool, error) {
	var got map[int64]bool
	err := s.inTx(ctx, "claiming jobs", func(t tx) error {
		got = map[int64]bool{}
		free, err := s.stillThere(ctx, t.main, rows, s.d.skipLocked)
		if err != nil || len(free) == 0 {
			return err
		}
		if free, err = s.permit(ctx, t, c, free); err != nil || len(free) == 0 {
			return err
		}
		in, inArgs := s.d.rows(ids(free))
		set, args := s.t.take(until, c.token)
		n, err := s.exec(ctx, t.main, "UPDATE "+s.t.shape().name+" SET "+set+" WHERE "+in, append(args, inArgs...)...)
		if err == nil && n != int64(len(free)) {
			err = fmt.Errorf("%d of %d locked rows were there", n, len(free))
		}
		if err != nil {
			return err
		}
		for _, x := range free {
			got[x.id] = true
		}
		return s.recordCrashes(ctx, t, free)
	})
	return got, err
}

// stillThere reads which rows are as they were, locking them when told to.
func (s *Store) stillThere(ctx context.Context, q Tx, rows []*candidate, lock string) ([]*candidate, error) {
	in, args := s.d.rows(ids(rows))
	t := s.t.shape()
	byID := make(map[int64]*candidate, len(rows))
	for _, x := range rows {
		byID[x.id] = x
	}
	var free []*candidate
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var now candidate
		if err := r.Scan(&now.id, &now.attempts, &now.locked, &now.due, &now.status, &now.token, &now.name, &now.priority, &now.max); err != nil {
			return err
		}
		was := byID[now.id]
		if now.due <= was.seen && was.attempts == now.attempts && was.locked == now.locked && was.status == now.status && was.token == now.token {
			free = append(free, was)
		}
		return nil
	}, "SELECT id, attempts, "+t.locked.seconds()+", "+t.due.seconds()+", "+s.t.columns()+" FROM "+t.name+" WHERE "+in+" ORDER BY id"+lock, args...)
	return free, err
}

// takeUnchanged changes rows on the condition that they are as they were read:
// all of them or none. It trusts no lock.
func (s *Store) takeUnchanged(ctx context.Context, c *claim, rows []*candidate, until int64) (map[int64]bool, error) {
	got := map[int64]bool{}
	for try := 0; try < 3 && len(rows) > 1 && s.maxBatch > 1; try++ {
		err := s.takeAll(ctx, c, rows, until, got)
		if err == nil || !errors.Is(err, errContended) {
			return got, err
		}
		s.crowded = crowdedFor
		if rows, err = s.stillThere(ctx, s.db, rows, ""); err != nil {
			return nil, fmt.Errorf("claiming jobs: %w", err)
		}
	}
	if s.crowded > 0 {
		s.crowded--
	}
	for _, x := range rows {
		err := s.takeAll(ctx, c, []*candidate{x}, until, got)
		if errors.Is(err, errContended) {
			s.crowded = crowdedFor
		} else if err != nil {
			if len(got) > 0 { // what is committed must be run
				_ = s.unanswered(c, []*candidate{x}, until, err) // it comes back with the next claim, if it lasts
				return got, nil
			}
			return nil, err
		}
	}
	return got, nil
}

// takeAll is one all-or-nothing transaction of takeUnchanged.
func (s *Store) takeAll(ctx context.Context, c *claim, rows []*candidate, until int64, got map[int64]bool) error {
	if len(rows) == 1 && rows[0].policy.Limit == 0 && !rows[0].rescued {
		err := s.change(ctx, s.db, rows, until, c.token)
		if Classify(err) == RetryTransaction {
			return errContended // a deadlock undid it: whoever won has the row
		}
		if err == nil {
			got[rows[0].id] = true
		}
		return err
	}
	var permitted []*candidate
	err := s.inTx(ctx, "claiming jobs", func(t tx) error {
		var err error
		if permitted, err = s.permit(ctx, t, c, rows); err != nil {
			return err
		}
		if err := s.change(ctx, t.main, permitted, until, c.token); err != nil {
			return err
		}
		return s.recordCrashes(ctx, t, permitted)
	})
	if err == nil {
		for _, x := range permitted {
			got[x.id] = true
		}
	}
	return err
}

// state is what a candidate was read as.
type state struct {
	attempts int
	locked   sql.NullInt64
	status   string
	token    sql.NullString
	seen     int64
}

// change is the compare-and-set, one UPDATE for all rows in the same state.
func (s *Store) change(ctx context.Context, q Tx, rows []*candidate, until int64, token string) error {
	groups := map[state][]*candidate{}
	var order []state
	for _, x := range rows {
		k := state{x.attempts, x.locked, x.status, x.token, x.seen}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], x)
	}
	for _, k := range order {
		group := groups[k]
		in, inArgs := s.d.rows(ids(group))
		set, args := s.t.take(until, token)
		cond, more := s.t.unchanged(group[0])
		n, err := s.exec(ctx, q, "UPDATE "+s.t.shape().name+" SET "+set+" WHERE "+in+" AND "+cond, slices.Concat(args, inArgs, more)...)
		if err != nil {
			return err
		}
		if n != int64(len(group)) {
			return errContended
		}
	}
	return nil
}

// won says which of x and its twins the claim got. Where the leader was lost to
// another, the first of the twins leads.
func won(x *candidate, got map[int64]bool) (lead *candidate, twins []*candidate) {
	for _, twin := range x.twins {
		if got[twin.id] {
			twins = append(twins, twin)
		}
	}
	switch {
	case got[x.id]:
		return x, twins
	case len(twins) > 0:
		return twins[0], twins[1:]
	}
	return nil, nil
}

// claimed makes what the worker gets.
func (c *claim) claimed(lead *candidate, twins []*candidate, until int64) jobs.Claimed {
	delete(c.s.doubts, lead.id)
	out := jobs.Claimed{Job: lead.job, Lease: c.lease(lead, until), Payload: lead.payload, Fault: lead.fault, Rescued: lead.rescued}
	for _, row := range twins {
		lease := c.lease(row, until)
		lease.Token += twinMark + row.job.UUID
		out.Twins = append(out.Twins, lease)
		c.stood[row.id] = true
		delete(c.s.doubts, row.id)
	}
	return out
}

func (c *claim) lease(x *candidate, until int64) jobs.Lease {
	return jobs.Lease{ID: x.id, Token: c.token, Attempt: x.job.Attempt, ReservedAt: until}
}
