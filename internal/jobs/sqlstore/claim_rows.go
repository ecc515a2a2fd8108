package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// errContended says that some of the candidates are no longer as they were
// read: the transaction is undone and fewer are tried.
var errContended = errors.New("another worker was faster")

// claimRows makes the chosen rows this worker's, in one committed transaction, and
// returns those that it got.
func (s *Store) claimRows(ctx context.Context, c *claim, chosen []*Candidate, now int64) ([]jobs.Claimed, error) {
	rows := flatten(chosen)
	until := s.leaseMark(now, int64(c.r.Lease.Seconds()))
	var got map[int64]bool
	var err error
	if s.mode == Skip && len(rows) > 1 && s.maxBatch > 1 {
		got, err = s.claimOptimistic(ctx, c, rows, until)
	} else {
		got, err = s.claimCompareAndSet(ctx, c, rows, until)
	}
	if err != nil {
		return nil, s.noteInDoubt(c, rows, until, err)
	}
	taken := make([]jobs.Claimed, 0, len(chosen))
	for _, x := range chosen {
		if lead, duplicates := won(x, got); lead != nil {
			taken = append(taken, c.claimed(lead, duplicates, until))
		}
	}
	return taken, nil
}

// flatten lists rows and their twins by id, the order in which they are locked.
func flatten(chosen []*Candidate) []*Candidate {
	rows := make([]*Candidate, 0, len(chosen))
	for _, x := range chosen {
		x.primary = x.id
		rows = append(rows, x)
		for _, duplicate := range x.duplicates {
			duplicate.primary = x.id
			rows = append(rows, duplicate)
		}
	}
	slices.SortFunc(rows, func(a, b *Candidate) int { return cmp.Compare(a.id, b.id) })
	return rows
}

func ids(rows []*Candidate) []int64 {
	list := make([]int64, len(rows))
	for i, x := range rows {
		list[i] = x.id
	}
	return list
}

// contentionBackoff is for how many claims rows are locked at once, and no spares are
// used, after another claimer was met.
const contentionBackoff = 32

// claimOptimistic first tries without the lock, which saves a statement where
// nobody else claims from the table at this moment.
func (s *Store) claimOptimistic(ctx context.Context, c *claim, rows []*Candidate, until int64) (map[int64]bool, error) {
	if s.contended > 0 {
		s.contended--
		return s.claimWithLock(ctx, c, rows, until)
	}
	got := map[int64]bool{}
	err := s.claimBatch(ctx, c, rows, until, got)
	if err == nil || !errors.Is(err, errContended) {
		return got, err
	}
	s.contended = contentionBackoff
	return s.claimWithLock(ctx, c, rows, until)
}

// claimWithLock steps over rows that others hold.
func (s *Store) claimWithLock(ctx context.Context, c *claim, rows []*Candidate, until int64) (map[int64]bool, error) {
	var got map[int64]bool
	err := s.inTx(ctx, "claiming jobs", func(t Transaction) error {
		got = map[int64]bool{}
		free, err := s.recheck(ctx, t.main, rows, s.Dialect.SkipLocked)
		if err != nil || len(free) == 0 {
			return err
		}
		if free, err = s.acquirePermits(ctx, t, c, free); err != nil || len(free) == 0 {
			return err
		}
		in, inArgs := s.Dialect.IDRanges(ids(free))
		set, args := s.Layout.claimRows(until, c.token)
		n, err := s.exec(ctx, t.main, "UPDATE "+s.Layout.Table().name+" SET "+set+" WHERE "+in, append(args, inArgs...)...)
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

// recheck reads which rows are as they were, locking them when told to.
func (s *Store) recheck(ctx context.Context, q Tx, rows []*Candidate, lock string) ([]*Candidate, error) {
	in, args := s.Dialect.IDRanges(ids(rows))
	t := s.Layout.Table()
	byID := make(map[int64]*Candidate, len(rows))
	for _, x := range rows {
		byID[x.id] = x
	}
	var free []*Candidate
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var now Candidate
		if err := r.Scan(&now.id, &now.attempts, &now.locked, &now.due, &now.status, &now.token, &now.name, &now.priority, &now.MaxAttempts); err != nil {
			return err
		}
		was := byID[now.id]
		if now.due <= was.seen && was.attempts == now.attempts && was.locked == now.locked && was.status == now.status && was.token == now.token {
			free = append(free, was)
		}
		return nil
	}, "SELECT id, attempts, "+t.locked.seconds()+", "+t.due.seconds()+", "+s.Layout.columns()+" FROM "+t.name+" WHERE "+in+" ORDER BY id"+lock, args...)
	return free, err
}

// claimCompareAndSet changes rows on the condition that they are as they were read:
// all of them or none. It trusts no lock.
func (s *Store) claimCompareAndSet(ctx context.Context, c *claim, rows []*Candidate, until int64) (map[int64]bool, error) {
	got := map[int64]bool{}
	for try := 0; try < 3 && len(rows) > 1 && s.maxBatch > 1; try++ {
		err := s.claimBatch(ctx, c, rows, until, got)
		if err == nil || !errors.Is(err, errContended) {
			return got, err
		}
		s.contended = contentionBackoff
		if rows, err = s.recheck(ctx, s.db, rows, ""); err != nil {
			return nil, fmt.Errorf("claiming jobs: %w", err)
		}
	}
	if s.contended > 0 {
		s.contended--
	}
	for _, x := range rows {
		err := s.claimBatch(ctx, c, []*Candidate{x}, until, got)
		if errors.Is(err, errContended) {
			s.contended = contentionBackoff
		} else if err != nil {
			if len(got) > 0 { // what is committed must be run
				_ = s.noteInDoubt(c, []*Candidate{x}, until, err) // it comes back with the next claim, if it lasts
				return got, nil
			}
			return nil, err
		}
	}
	return got, nil
}

// claimBatch is one all-or-nothing transaction of takeUnchanged.
func (s *Store) claimBatch(ctx context.Context, c *claim, rows []*Candidate, until int64, got map[int64]bool) error {
	if len(rows) == 1 && rows[0].policy.Limit == 0 && !rows[0].rescued {
		err := s.compareAndSet(ctx, s.db, rows, until, c.token)
		if database.Classify(err) == database.RetryTransaction {
			return errContended // a deadlock undid it: whoever won has the row
		}
		if err == nil {
			got[rows[0].id] = true
		}
		return err
	}
	var permitted []*Candidate
	err := s.inTx(ctx, "claiming jobs", func(t Transaction) error {
		var err error
		if permitted, err = s.acquirePermits(ctx, t, c, rows); err != nil {
			return err
		}
		if err := s.compareAndSet(ctx, t.main, permitted, until, c.token); err != nil {
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

// compareAndSet is the compare-and-set, one UPDATE for all rows in the same state.
func (s *Store) compareAndSet(ctx context.Context, q Tx, rows []*Candidate, until int64, token string) error {
	groups := map[state][]*Candidate{}
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
		in, inArgs := s.Dialect.IDRanges(ids(group))
		set, args := s.Layout.claimRows(until, token)
		cond, more := s.Layout.unchanged(group[0])
		n, err := s.exec(ctx, q, "UPDATE "+s.Layout.Table().name+" SET "+set+" WHERE "+in+" AND "+cond, slices.Concat(args, inArgs, more)...)
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
func won(x *Candidate, got map[int64]bool) (lead *Candidate, duplicates []*Candidate) {
	for _, duplicate := range x.duplicates {
		if got[duplicate.id] {
			duplicates = append(duplicates, duplicate)
		}
	}
	switch {
	case got[x.id]:
		return x, duplicates
	case len(duplicates) > 0:
		return duplicates[0], duplicates[1:]
	}
	return nil, nil
}

// claimed makes what the worker gets.
func (c *claim) claimed(lead *Candidate, duplicates []*Candidate, until int64) jobs.Claimed {
	delete(c.s.inDoubt, lead.id)
	out := jobs.Claimed{Job: lead.job, Lease: c.lease(lead, until), Payload: lead.payload, Fault: lead.fault, Rescued: lead.rescued}
	for _, row := range duplicates {
		lease := c.lease(row, until)
		lease.Token += duplicateMark + row.job.UUID
		out.Duplicates = append(out.Duplicates, lease)
		c.absorbed[row.id] = true
		delete(c.s.inDoubt, row.id)
	}
	return out
}

func (c *claim) lease(x *Candidate, until int64) jobs.Lease {
	return jobs.Lease{ID: x.id, Token: c.token, Attempt: x.job.Attempt, ReservedAt: until}
}
