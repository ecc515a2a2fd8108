package mail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

func newLimiter(db *sqlx.DB, limits Limits) *limiter {
	return &limiter{db: db, limits: limits, d: database.Of(db), shared: newGroupCommit(db)}
}

func (l *limiter) windows(domain string) []window {
	rate, named := l.limits.Domains[domain]
	if !named {
		rate = l.limits.Domains["*"]
	}
	return rate.windows("domain:" + domain)
}

// take lets as many of the recipients through as the limits have space for, and
// counts them. One transaction locks all buckets in the order of their names.
func (l *limiter) take(ctx context.Context, recipients []address.Address) (grant, error) {
	perDomain := map[string][]window{}
	all := l.limits.All.windows("all")
	buckets := map[string]window{}
	for _, w := range all {
		buckets[w.bucket] = w
	}
	for _, r := range recipients {
		domain := r.Domain()
		if _, seen := perDomain[domain]; seen {
			continue
		}
		perDomain[domain] = l.windows(domain)
		for _, w := range perDomain[domain] {
			buckets[w.bucket] = w
		}
	}
	if len(buckets) == 0 {
		return grant{taken: recipients}, nil
	}
	names := slices.Sorted(maps.Keys(buckets))
	decide := func(rows map[string]counts, now int64) grant {
		for name, c := range rows {
			rows[name] = c.at(now / slotMillis(buckets[name]))
		}
		g := grant{at: now}
		for _, r := range recipients {
			if wait := reserve(rows, slices.Concat(all, perDomain[r.Domain()]), now); wait == 0 {
				g.taken = append(g.taken, r)
			} else if g.wait == 0 || wait < g.wait {
				g.wait = wait
			}
		}
		return g
	}
	g, err := l.transaction(ctx, names, decide)
	if errors.Is(err, errRowsMissing) {
		if err := l.makeRows(ctx, names); err != nil {
			return grant{}, err
		}
		g, err = l.transaction(ctx, names, decide)
	}
	return g, err
}

// reserve counts one recipient in all its windows, or in none: then it says
// how long until the fullest has space.
func reserve(rows map[string]counts, windows []window, now int64) time.Duration {
	var wait time.Duration
	for _, w := range windows {
		if free, in := rows[w.bucket].remaining(w.limit); free == 0 {
			length := slotMillis(w)
			until := (rows[w.bucket].Last+in)*length - now
			wait = max(wait, time.Duration(max(until, 1))*time.Millisecond)
		}
	}
	if wait > 0 {
		return wait
	}
	for _, w := range windows {
		c := rows[w.bucket]
		c.N[0]++
		rows[w.bucket] = c
	}
	return 0
}

// makeRows adds the rows that are missing, outside the transaction: two that
// insert under lock could wait for each other.
func (l *limiter) makeRows(ctx context.Context, names []string) error {
	insert := l.d.InsertIgnore("cmsjobs_mail_limits", "bucket, counts, updated_at", "(?, '{}', 0)")
	for _, name := range names {
		if _, err := l.db.ExecContext(ctx, l.db.Rebind(insert), name); err != nil {
			return fmt.Errorf("making the mail limit %s: %w", name, err)
		}
	}
	return nil
}

// transaction counts in a transaction. The rows of the limit over all are what
// every mail locks: mails that come while they are locked share the next
// transaction, or each would wait for the commits of all before it. Without
// them, mails share no first row, and two shared transactions could wait for
// each other: then each has its own.
func (l *limiter) transaction(ctx context.Context, names []string, decide func(map[string]counts, int64) grant) (grant,
	error) {
	const doing = "counting against the mail limits"
	var g grant
	write := func(ctx context.Context, b *batch) (err error) {
		g, err = l.count(ctx, b, names, decide)
		return err
	}
	run := l.shared.alone
	if len(l.limits.All.windows("all")) > 0 {
		run = l.shared.do
	}
	if err := run(ctx, doing, write); err != nil {
		return grant{}, err
	}
	return g, nil
}
