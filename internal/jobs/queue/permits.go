package queue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxDeferred is how many jobs of a type at its limit are remembered, to be
// tried first when a permit comes free.
const maxDeferred = 256

// permitted says whether x may be chosen as far as its type's limit goes. The
// answer is a guess from one read; permit makes sure.
func (c *claim) permitted(ctx context.Context, x *tables.Candidate) (bool, error) {
	if x.Policy.Limit <= 0 || x.Fault != nil {
		return true, nil
	}
	jobType := x.Job.Type
	if _, read := c.freePermits[jobType]; !read {
		if err := c.s.ensurePermits(ctx, jobType, x.Policy.Limit); err != nil {
			return false, err
		}
		used, err := c.s.permitsInUse(ctx, jobType)
		if err != nil {
			return false, err
		}
		c.freePermits[jobType] = x.Policy.Limit - used
	}
	if c.freePermits[jobType] > 0 {
		c.freePermits[jobType]--
		return true, nil
	}
	if waiting := c.s.deferred[jobType]; len(waiting) < maxDeferred && !slices.Contains(waiting, x.ID) {
		c.s.deferred[jobType] = append(waiting, x.ID)
	}
	return false, nil
}

func (s *Store) permitsInUse(ctx context.Context, jobType string) (used int, err error) {
	_, err = s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&used}, "SELECT COUNT(*) FROM cmsjobs_permits WHERE type = "+
		"? AND expires_at >= "+s.tables.SecondsNow(), jobType)
	if err != nil {
		err = fmt.Errorf("counting the running jobs of %s: %w", jobType, err)
	}
	return used, err
}

// acquirePermits takes a permit for each row of a limited type and leaves out those
// that get none. A permit is leased with its job: a crash frees it.
func (s *Store) acquirePermits(ctx context.Context, t tables.Transaction, c *claim, rows []*tables.Candidate) (
	[]*tables.Candidate, error) {
	if !slices.ContainsFunc(rows, func(x *tables.Candidate) bool { return x.Policy.Limit > 0 }) {
		return rows, nil
	}
	var kept []*tables.Candidate
	granted := map[int64]bool{} // by primary: its duplicates share its permit
	for _, x := range rows {
		ok, decided := granted[x.Primary]
		if !decided {
			ok = true
			if x.Policy.Limit > 0 && x.Fault == nil {
				var err error
				if ok, err = s.acquirePermit(ctx, t.Own, x, c.token, c.r.Lease); err != nil {
					return nil, err
				}
			}
			granted[x.Primary] = ok
		}
		if ok {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// acquirePermit takes one free permit of a type.
func (s *Store) acquirePermit(ctx context.Context, q tables.Tx, x *tables.Candidate, token string,
	lease time.Duration) (bool, error) {
	var free []int
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var permit int
		err := r.Scan(&permit)
		free = append(free, permit)
		return err
	}, "SELECT permit FROM cmsjobs_permits WHERE type = ? AND permit <= ? AND expires_at < "+s.tables.SecondsNow()+
		" ORDER BY permit", x.Job.Type, x.Policy.Limit)
	if err != nil {
		return false, err
	}
	for _, permit := range free {
		n, err := s.tables.Exec(ctx, q, fmt.Sprintf("UPDATE cmsjobs_permits SET job_id = ?, token = ?, expires_at = "+
			"%s + %d WHERE type = ? AND permit = ? AND expires_at < %s",
			s.tables.SecondsNow(), int64(lease.Seconds()), s.tables.SecondsNow()), x.ID, tables.RandomPart(token),
			x.Job.Type, permit)
		if err != nil || n == 1 {
			return n == 1, err
		}
	}
	return false, nil
}

// ensurePermits makes the rows of a type's permits, once a process. Its caller is
// the claimer: s.mu may not be held while the database is waited for, as a
// settlement asks for it inside of the transaction that is waited for.
func (s *Store) ensurePermits(ctx context.Context, jobType string, limit int) error {
	for permit := s.permits[jobType] + 1; permit <= limit; permit++ {
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_permits",
			"type, permit", "(?, ?)"), jobType, permit); err != nil {
			return fmt.Errorf("making the permits of %s: %w", jobType, err)
		}
		s.permits[jobType] = permit
	}
	return nil
}

// releasePermits frees permits when their jobs end.
func (s *Store) releasePermits(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	var limited []int64
	tokens := map[string]bool{}
	for _, e := range ends {
		if entry, ok := s.tables.Options.Registry.Lookup(e.Claimed.Job.Type); ok && entry.Policy.Limit > 0 {
			limited = append(limited, e.Claimed.Lease.ID)
			for _, duplicate := range e.Claimed.Duplicates {
				limited = append(limited, duplicate.ID)
			}
			tokens[tables.RandomPart(tables.TokenOf(e.Claimed.Lease))] = true
		}
	}
	for token := range tokens {
		in, args := s.tables.Dialect.In("job_id", limited)
		if _, err := s.tables.Exec(ctx, q, "UPDATE cmsjobs_permits SET expires_at = 0, job_id = 0, token = '' WHERE "+
			"token = ? AND "+in, append([]any{token}, args...)...); err != nil {
			return fmt.Errorf("freeing permits: %w", err)
		}
	}
	return nil
}
