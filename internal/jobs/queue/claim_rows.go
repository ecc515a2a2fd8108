package queue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// claimRows makes the chosen rows this worker's, in one committed transaction, and
// returns those that it got.
func (s *Store) claimRows(ctx context.Context, c *claim, chosen []*tables.Candidate, now int64) ([]jobs.Claimed,
	error) {
	rows := flatten(chosen)
	until := s.tables.LeaseMark(now, int64(c.r.Lease.Seconds()))
	got, err := s.claimCompareAndSet(ctx, c, rows, until)
	if err != nil {
		return nil, s.noteInDoubt(c, rows, until, err)
	}
	taken := make([]jobs.Claimed, 0, len(chosen))
	for _, x := range chosen {
		if lead, duplicates := claimedOf(x, got); lead != nil {
			taken = append(taken, c.claimed(lead, duplicates, until))
			got[lead.ID] = false // a row that was chosen twice is one job
		}
	}
	return taken, nil
}

// flatten lists rows and their duplicates by id, the order in which they are locked.
func flatten(chosen []*tables.Candidate) []*tables.Candidate {
	rows := make([]*tables.Candidate, 0, len(chosen))
	for _, x := range chosen {
		x.Primary = x.ID
		rows = append(rows, x)
		for _, duplicate := range x.Duplicates {
			duplicate.Primary = x.ID
			rows = append(rows, duplicate)
		}
	}
	slices.SortFunc(rows, func(a, b *tables.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

func ids(rows []*tables.Candidate) []int64 {
	list := make([]int64, len(rows))
	for i, x := range rows {
		list[i] = x.ID
	}
	return list
}

// recheck reads which rows are as they were.
func (s *Store) recheck(ctx context.Context, rows []*tables.Candidate) ([]*tables.Candidate, error) {
	in, args := s.tables.Dialect.IDRanges(ids(rows))
	t := s.tables.Layout.Table()
	byID := make(map[int64]*tables.Candidate, len(rows))
	for _, x := range rows {
		byID[x.ID] = x
	}
	var free []*tables.Candidate
	err := s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var now tables.Candidate
		if err := r.Scan(&now.ID, &now.Attempts, &now.Locked, &now.Due, &now.Status, &now.Token, &now.Name,
			&now.Priority, &now.MaxAttempts); err != nil {
			return err
		}
		was := byID[now.ID]
		if now.Due <= was.Seen && was.Attempts == now.Attempts && was.Locked == now.Locked &&
			was.Status == now.Status && was.Token == now.Token {
			free = append(free, was)
		}
		return nil
	}, "SELECT id, attempts, "+t.Locked.Seconds()+", "+t.Due.Seconds()+", "+s.tables.Layout.Columns()+" FROM "+t.Name+
		" WHERE "+in+" ORDER BY id", args...)
	return free, err
}

// claimCompareAndSet changes rows on the condition that they are as they were read:
// all of them or none. It trusts no lock.
func (s *Store) claimCompareAndSet(ctx context.Context, c *claim, rows []*tables.Candidate, until int64) (
	map[int64]bool, error) {
	got := map[int64]bool{}
	for try := 0; try < 3 && len(rows) > 1 && s.tables.MaxBatch > 1; try++ {
		err := s.claimBatch(ctx, c, rows, until, got)
		if err == nil || !errors.Is(err, errContended) {
			return got, err
		}
		if rows, err = s.recheck(ctx, rows); err != nil {
			return nil, fmt.Errorf("claiming jobs: %w", err)
		}
	}
	for _, x := range rows {
		if err := s.claimBatch(ctx, c, []*tables.Candidate{x}, until, got); err != nil &&
			!errors.Is(err, errContended) {
			if len(got) > 0 { // what is committed must be run
				// it comes back with the next claim, if it lasts
				_ = s.noteInDoubt(c, []*tables.Candidate{x}, until, err)
				return got, nil
			}
			return nil, err
		}
	}
	return got, nil
}

// claimBatch is one all-or-nothing transaction of claimCompareAndSet.
func (s *Store) claimBatch(ctx context.Context, c *claim, rows []*tables.Candidate, until int64,
	got map[int64]bool) error {
	if len(rows) == 1 && !rows[0].Policy.Limited() && !rows[0].Rescued {
		err := s.compareAndSet(ctx, s.tables.DB, rows, until, c.token)
		if database.Classify(err) == database.RetryTransaction {
			return errContended // a deadlock undid it: the other claimer has the row
		}
		if err == nil {
			got[rows[0].ID] = true
		}
		return err
	}
	var permitted []*tables.Candidate
	err := s.tables.InTx(ctx, "claiming jobs", func(t tables.Transaction) error {
		var err error
		if permitted, err = s.acquirePermits(ctx, t, c, rows); err != nil {
			return err
		}
		if err := s.compareAndSet(ctx, t.Main, permitted, until, c.token); err != nil {
			return err
		}
		return s.recordCrashes(ctx, t, permitted)
	})
	if err == nil {
		for _, x := range permitted {
			got[x.ID] = true
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
	sent     int64 // its number, where the row was not read
}

func stateOf(x *tables.Candidate) state {
	k := state{x.Attempts, x.Locked, x.Status, x.Token, x.Seen, 0}
	if x.Sent {
		k.sent = x.ID
	}
	return k
}

// compareAndSet is the compare-and-set, one UPDATE for all rows in the same state.
func (s *Store) compareAndSet(ctx context.Context, q tables.Tx, rows []*tables.Candidate, until int64,
	token string) error {
	groups := map[state][]*tables.Candidate{}
	var order []state
	for _, x := range rows {
		k := stateOf(x)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], x)
	}
	for _, k := range order {
		group := groups[k]
		in, inArgs := s.tables.Dialect.IDRanges(ids(group))
		set, args := s.tables.Layout.ClaimRows(until, token)
		cond, more := s.tables.Layout.Unchanged(group[0])
		if group[0].Sent {
			cond, more = s.tables.AsSent(group[0].Job.Queue, group[0])
		}
		n, err := s.tables.Exec(ctx, q, "UPDATE "+s.tables.Layout.Table().Name+" SET "+set+" WHERE "+in+" AND "+cond,
			slices.Concat(args, inArgs, more)...)
		if err != nil {
			return err
		}
		if n != int64(len(group)) {
			return errContended
		}
	}
	return nil
}

// claimedOf says which of x and its duplicates the claim got. Where another claimer
// got the primary, the first of the duplicates takes its part.
func claimedOf(x *tables.Candidate, got map[int64]bool) (lead *tables.Candidate, duplicates []*tables.Candidate) {
	for _, duplicate := range x.Duplicates {
		if got[duplicate.ID] {
			duplicates = append(duplicates, duplicate)
		}
	}
	switch {
	case got[x.ID]:
		return x, duplicates
	case len(duplicates) > 0:
		return duplicates[0], duplicates[1:]
	}
	return nil, nil
}

// claimed makes what the worker gets.
func (c *claim) claimed(lead *tables.Candidate, duplicates []*tables.Candidate, until int64) jobs.Claimed {
	delete(c.s.inDoubt, lead.ID)
	out := jobs.Claimed{Job: lead.Job, Lease: c.lease(lead, until), Payload: lead.Payload, Fault: lead.Fault,
		Rescued: lead.Rescued}
	for _, row := range duplicates {
		lease := c.lease(row, until)
		lease.Token += tables.DuplicateMark + row.Job.UUID
		out.Duplicates = append(out.Duplicates, lease)
		c.absorbed[row.ID] = true
		delete(c.s.inDoubt, row.ID)
	}
	return out
}

func (c *claim) lease(x *tables.Candidate, until int64) jobs.Lease {
	return jobs.Lease{ID: x.ID, Token: c.token, Attempt: x.Job.Attempt, ReservedAt: until}
}

// takeNext claims the next job by a separate statement in the settlement's
// transaction. Where another worker was faster, errShort undoes the whole, unless
// it is one row, of which nothing was written.
func (s *Store) takeNext(ctx context.Context, q tables.Tx, n *next) error {
	if n == nil {
		return nil
	}
	n.won = nil
	err := s.compareAndSet(ctx, q, n.rows, n.until, n.token)
	switch {
	case err == nil:
		n.wonAll()
	case errors.Is(err, errContended) && len(n.rows) == 1:
		return nil
	case errors.Is(err, errContended):
		return errShort
	}
	return err
}

// taking is the claim of the next jobs as SQL.
func (s *Store) taking(n *next) (string, []any) {
	in, inArgs := s.tables.Dialect.IDRanges(ids(n.rows))
	set, args := s.tables.Layout.ClaimRows(n.until, n.token)
	cond, more := s.tables.Layout.Unchanged(n.rows[0])
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s AND %s", s.tables.Layout.Table().Name, set, in, cond),
		slices.Concat(args, inArgs, more)
}

// noteWon notes that the claim got a row; 0 stands for all of them.
func (n *next) noteWon(id int64) {
	if id == 0 {
		n.wonAll()
		return
	}
	if n.byID == nil {
		n.byID = make(map[int64]*tables.Candidate, len(n.rows))
		for _, row := range n.rows {
			n.byID[row.ID] = row
		}
	}
	if row := n.byID[id]; row != nil {
		n.won = append(n.won, row)
	}
}
