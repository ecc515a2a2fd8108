package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// maxDeferred is how many jobs of a type at its limit are remembered, to be
// tried first when a permit comes free.
const maxDeferred = 256

// permitted says whether x may be chosen as far as its type's limit goes. The
// answer is a guess from one read; permit makes sure.
func (c *claim) permitted(ctx context.Context, queue string, x *Candidate) (bool, error) {
	if x.policy.Limit <= 0 || x.fault != nil {
		return true, nil
	}
	kind := x.job.Type
	if _, read := c.free[kind]; !read {
		if err := c.s.ensurePermits(ctx, kind, x.policy.Limit); err != nil {
			return false, err
		}
		used, err := c.s.permitsInUse(ctx, kind)
		if err != nil {
			return false, err
		}
		c.free[kind] = x.policy.Limit - used
	}
	if c.free[kind] > 0 {
		c.free[kind]--
		return true, nil
	}
	if waiting := c.s.deferred[kind]; len(waiting) < maxDeferred && !slices.Contains(waiting, x.id) {
		c.s.deferred[kind] = append(waiting, x.id)
	}
	return false, nil
}

func (s *Store) permitsInUse(ctx context.Context, kind string) (used int, err error) {
	_, err = s.QueryRow(ctx, s.ownDB, []any{&used}, "SELECT COUNT(*) FROM cmsjobs_permits WHERE type = ? AND expires_at >= "+s.SecondsNow(), kind)
	if err != nil {
		err = fmt.Errorf("counting the running jobs of %s: %w", kind, err)
	}
	return used, err
}

// deferred tries the jobs that an earlier claim left because their type was at
// its limit, so that they need not be found again.
func (c *claim) deferred(ctx context.Context) error {
	for kind, waiting := range c.s.deferred {
		entry, ok := c.s.Options.Registry.Lookup(kind)
		if !ok || c.want() <= 0 {
			continue
		}
		used, err := c.s.permitsInUse(ctx, kind)
		if err != nil {
			return err
		}
		if c.free[kind] = entry.Policy.Limit - used; c.free[kind] <= 0 {
			continue
		}
		delete(c.s.deferred, kind)
		for _, queue := range c.r.Queues {
			in, args := c.s.Dialect.In("id", waiting)
			l := CandidateQuery{where: "queue = ? AND " + in + " AND " + c.s.Layout.waiting(), args: append([]any{queue}, args...), order: c.s.OrderBy(), limit: len(waiting)}
			found, now, err := c.s.ReadCandidates(ctx, c.s.db, l)
			if err != nil {
				return err
			}
			if _, err := c.process(ctx, queue, found, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// acquirePermits takes a permit for each row of a limited type and leaves out those
// that get none. A permit is leased with its job: a crash frees it.
func (s *Store) acquirePermits(ctx context.Context, t Transaction, c *claim, rows []*Candidate) ([]*Candidate, error) {
	if !slices.ContainsFunc(rows, func(x *Candidate) bool { return x.policy.Limit > 0 }) {
		return rows, nil
	}
	var kept []*Candidate
	granted := map[int64]bool{} // by leader: twins share its permit
	for _, x := range rows {
		ok, decided := granted[x.primary]
		if !decided {
			ok = true
			if x.policy.Limit > 0 && x.fault == nil {
				var err error
				if ok, err = s.acquirePermit(ctx, t.own, x, c.token, c.r.Lease); err != nil {
					return nil, err
				}
			}
			granted[x.primary] = ok
		}
		if ok {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// acquirePermit takes one free permit of a type.
func (s *Store) acquirePermit(ctx context.Context, q Tx, x *Candidate, token string, lease time.Duration) (bool, error) {
	var free []int
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var permit int
		err := r.Scan(&permit)
		free = append(free, permit)
		return err
	}, "SELECT permit FROM cmsjobs_permits WHERE type = ? AND permit <= ? AND expires_at < "+s.SecondsNow()+" ORDER BY permit", x.job.Type, x.policy.Limit)
	if err != nil {
		return false, err
	}
	for _, permit := range free {
		n, err := s.exec(ctx, q, fmt.Sprintf("UPDATE cmsjobs_permits SET job_id = ?, token = ?, expires_at = %s + %d WHERE type = ? AND permit = ? AND expires_at < %s",
			s.SecondsNow(), int64(lease.Seconds()), s.SecondsNow()), x.id, randomPart(token), x.job.Type, permit)
		if err != nil || n == 1 {
			return n == 1, err
		}
	}
	return false, nil
}

// ensurePermits makes the rows of a type's permits, once a process. Its caller is
// the claimer: s.mu may not be held while the database is waited for, as a
// settlement asks for it inside of the transaction that is waited for.
func (s *Store) ensurePermits(ctx context.Context, kind string, limit int) error {
	for permit := s.permits[kind] + 1; permit <= limit; permit++ {
		if _, err := s.exec(ctx, s.ownDB, s.Dialect.InsertOrSkip("cmsjobs_permits", "type, permit", "(?, ?)", "type, permit"), kind, permit); err != nil {
			return fmt.Errorf("making the permits of %s: %w", kind, err)
		}
		s.permits[kind] = permit
	}
	return nil
}

// releasePermits gives permits back when their jobs end.
func (s *Store) releasePermits(ctx context.Context, q Tx, ends []pendingSettlement) error {
	var limited []int64
	tokens := map[string]bool{}
	for _, e := range ends {
		if entry, ok := s.Options.Registry.Lookup(e.Claimed.Job.Type); ok && entry.Policy.Limit > 0 {
			limited = append(limited, e.Claimed.Lease.ID)
			for _, duplicate := range e.Claimed.Duplicates {
				limited = append(limited, duplicate.ID)
			}
			tokens[randomPart(tokenOf(e.Claimed.Lease))] = true
		}
	}
	for token := range tokens {
		in, args := s.Dialect.In("job_id", limited)
		if _, err := s.exec(ctx, q, "UPDATE cmsjobs_permits SET expires_at = 0, job_id = 0, token = '' WHERE token = ? AND "+in, append([]any{token}, args...)...); err != nil {
			return fmt.Errorf("giving permits back: %w", err)
		}
	}
	return nil
}
