package queue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

const (
	// maxDeferred is how many jobs of a type at its limit are remembered, to be
	// tried first when a permit comes free.
	maxDeferred = 256
	// maxPermitsRead bounds how many free permits are tried.
	maxPermitsRead = 64
	// permitsMade is how many rows of permits one statement makes.
	permitsMade = 100
)

// permitSet are the permits of a type, of each of which a job needs one to begin: as
// many as may run at once, or as may begin within a length of time.
type permitSet struct {
	name string // the type; with a rate, the type and its length of time
	size int
	per  time.Duration // how long a permit is used; 0: until the job ends, or its lease
}

func permitSets(jobType string, p jobs.Policy) (sets []permitSet) {
	if p.Limit > 0 {
		sets = append(sets, permitSet{name: jobType, size: p.Limit})
	}
	for _, r := range p.Rates {
		sets = append(sets, permitSet{r.PermitsOf(jobType), r.Starts, r.Per})
	}
	return sets
}

// seconds is how many seconds after the current one a permit is used.
func (p permitSet) seconds(lease time.Duration) int64 {
	if p.per == 0 {
		return int64(lease.Seconds())
	}
	return int64(p.per.Seconds()) - 1
}

// permitted says whether x may be chosen as far as its type's limits go. The
// answer is a guess from one read; acquirePermits makes sure.
func (c *claim) permitted(ctx context.Context, x *tables.Candidate) (bool, error) {
	if !x.Policy.Limited() || x.Fault != nil {
		return true, nil
	}
	jobType := x.Job.Type
	free, err := c.free(ctx, jobType, x.Policy)
	if err != nil {
		return false, err
	}
	if free {
		for _, set := range permitSets(jobType, x.Policy) {
			c.freePermits[set.name]--
		}
		return true, nil
	}
	if waiting := c.s.deferred[jobType]; len(waiting) < maxDeferred && !slices.Contains(waiting, x.ID) {
		c.s.deferred[jobType] = append(waiting, x.ID)
	}
	return false, nil
}

// free says whether each of a type's sets has a free permit. Where a rate has none,
// the workers wake when it has.
func (c *claim) free(ctx context.Context, jobType string, p jobs.Policy) (bool, error) {
	free := true
	for _, set := range permitSets(jobType, p) {
		if _, read := c.freePermits[set.name]; !read {
			if err := c.s.ensurePermits(ctx, set); err != nil {
				return false, err
			}
			used, next, err := c.s.permitsInUse(ctx, set.name)
			if err != nil {
				return false, err
			}
			if c.freePermits[set.name] = set.size - used; set.per > 0 && used >= set.size {
				for _, queue := range c.r.Queues {
					c.s.wakeAt(queue, c.s.tables.Options.Clock().Add(next))
				}
			}
		}
		free = free && c.freePermits[set.name] > 0
	}
	return free, nil
}

// permitsInUse counts a set's used permits; next is how long until one of them is free.
func (s *Store) permitsInUse(ctx context.Context, set string) (used int, next time.Duration, err error) {
	now := s.tables.SecondsNow()
	var seconds int64
	_, err = s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&used, &seconds}, fmt.Sprintf("SELECT COUNT(*), "+
		"COALESCE(MIN(expires_at), %s) - %s + 1 FROM cmsjobs_permits WHERE type = ? AND expires_at >= %s", now, now,
		now), set)
	if err != nil {
		err = fmt.Errorf("counting the permits of %s: %w", set, err)
	}
	return used, time.Duration(seconds) * time.Second, err
}

// acquirePermits takes the permits for each row of a limited type and leaves out those
// that do not get all. A permit is leased with its job: a crash frees it.
func (s *Store) acquirePermits(ctx context.Context, t tables.Transaction, c *claim, rows []*tables.Candidate) (
	[]*tables.Candidate, error) {
	if !slices.ContainsFunc(rows, func(x *tables.Candidate) bool { return x.Policy.Limited() }) {
		return rows, nil
	}
	var kept []*tables.Candidate
	granted := map[int64]bool{} // by primary: its duplicates share its permits
	for _, x := range rows {
		ok, decided := granted[x.Primary]
		if !decided {
			var err error
			if ok, err = s.acquireAll(ctx, t.Own, c, x); err != nil {
				return nil, err
			}
			granted[x.Primary] = ok
		}
		if ok {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

// acquireAll takes one permit of each of a job's sets, or none.
func (s *Store) acquireAll(ctx context.Context, q tables.Tx, c *claim, x *tables.Candidate) (bool, error) {
	if x.Fault != nil {
		return true, nil
	}
	sets := permitSets(x.Job.Type, x.Policy)
	for i, set := range sets {
		ok, err := s.acquirePermit(ctx, q, set, x.ID, c.token, c.r.Lease)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, s.freePermits(ctx, q, c.token, names(sets[:i]), []int64{x.ID})
		}
	}
	return true, nil
}

// acquirePermit takes one free permit of a set.
func (s *Store) acquirePermit(ctx context.Context, q tables.Tx, set permitSet, job int64, token string,
	lease time.Duration) (bool, error) {
	var free []int
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var permit int
		err := r.Scan(&permit)
		free = append(free, permit)
		return err
	}, "SELECT permit FROM cmsjobs_permits WHERE type = ? AND permit <= ? AND expires_at < "+s.tables.SecondsNow()+
		" ORDER BY permit LIMIT "+strconv.Itoa(maxPermitsRead), set.name, set.size)
	if err != nil {
		return false, err
	}
	for _, permit := range free {
		n, err := s.tables.Exec(ctx, q, fmt.Sprintf("UPDATE cmsjobs_permits SET job_id = ?, token = ?, expires_at = "+
			"%s + %d WHERE type = ? AND permit = ? AND expires_at < %s",
			s.tables.SecondsNow(), set.seconds(lease), s.tables.SecondsNow()), job, tables.RandomPart(token),
			set.name, permit)
		if err != nil || n == 1 {
			return n == 1, err
		}
	}
	return false, nil
}

// ensurePermits makes the rows of a set's permits, once a process. Its caller is
// the claimer: s.mu may not be held while the database is waited for, as a
// settlement asks for it inside of the transaction that is waited for.
func (s *Store) ensurePermits(ctx context.Context, set permitSet) error {
	for made := s.permits[set.name]; made < set.size; made = s.permits[set.name] {
		values, args := "", []any{}
		upTo := min(made+permitsMade, set.size)
		for permit := made + 1; permit <= upTo; permit++ {
			if values != "" {
				values += ", "
			}
			values, args = values+"(?, ?)", append(args, set.name, permit)
		}
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_permits",
			"type, permit", values), args...); err != nil {
			return fmt.Errorf("making the permits of %s: %w", set.name, err)
		}
		s.permits[set.name] = upTo
	}
	return nil
}

// releasePermits frees permits when their jobs end. A start that counts towards a rate
// is counted for as long as the rate says, unless the job never began.
func (s *Store) releasePermits(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	type owner struct{ token, set string }
	owned := map[owner][]int64{}
	for _, e := range ends {
		entry, ok := s.tables.Options.Registry.Lookup(e.Claimed.Job.Type)
		if !ok {
			continue
		}
		for _, set := range permitSets(e.Claimed.Job.Type, entry.Policy) {
			if set.per > 0 && !e.Unstarted {
				continue
			}
			o := owner{tables.TokenOf(e.Claimed.Lease), set.name}
			owned[o] = append(owned[o], e.Claimed.Lease.ID)
			for _, duplicate := range e.Claimed.Duplicates {
				owned[o] = append(owned[o], duplicate.ID)
			}
		}
	}
	for o, jobs := range owned {
		if err := s.freePermits(ctx, q, o.token, []string{o.set}, jobs); err != nil {
			return fmt.Errorf("freeing permits: %w", err)
		}
	}
	return nil
}

// freePermits frees those permits of some sets that jobs have by a claim.
func (s *Store) freePermits(ctx context.Context, q tables.Tx, token string, sets []string, jobs []int64) error {
	in, args := s.tables.Dialect.In("job_id", jobs)
	for _, set := range sets {
		if _, err := s.tables.Exec(ctx, q, "UPDATE cmsjobs_permits SET expires_at = 0, job_id = 0, token = '' WHERE "+
			"type = ? AND token = ? AND "+in, append([]any{set, tables.RandomPart(token)}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func names(sets []permitSet) (list []string) {
	for _, set := range sets {
		list = append(list, set.name)
	}
	return list
}
