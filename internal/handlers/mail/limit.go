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
)

// Rate is how many recipients may be sent to in each length of time; 0 is as
// many as there are.
type Rate struct{ PerSecond, PerMinute, PerHour, PerDay int }

// Limits bound sending over all workers that share the database. A mail to
// three recipients counts three.
type Limits struct {
	All Rate
	// Domains bound sending to single recipient domains ("gmail.com"); "*"
	// is each domain that is not named.
	Domains map[string]Rate
}

func (l Limits) check() error {
	for _, r := range append(slices.Collect(maps.Values(l.Domains)), l.All) {
		if min(r.PerSecond, r.PerMinute, r.PerHour, r.PerDay) < 0 {
			return errors.New("a mail limit cannot be negative")
		}
	}
	return nil
}

// slots is into how many parts a window is cut. No window of the length of
// the limit ever sees more than the limit, wherever it begins; the price is
// that at most 1/slots of the rate is given away.
const slots = 10

type window struct {
	bucket string
	limit  int
	length time.Duration
}

func (r Rate) windows(name string) []window {
	all := []window{
		{name + "/second", r.PerSecond, time.Second},
		{name + "/minute", r.PerMinute, time.Minute},
		{name + "/hour", r.PerHour, time.Hour},
		{name + "/day", r.PerDay, 24 * time.Hour},
	}
	return slices.DeleteFunc(all, func(w window) bool { return w.limit == 0 })
}

// counts is what a bucket's row holds: how many were let through in each of
// the slots up to slot Last.
type counts struct {
	Last int64          `json:"last"`
	N    [slots + 1]int `json:"n"` // N[0] is slot Last, N[1] the one before, …
}

// at moves the counts on to the slot of nowMillis. A clock that went back
// leaves them where they are, which errs on the safe side.
func (c counts) at(slot int64) counts {
	if slot <= c.Last {
		return c
	}
	moved := counts{Last: slot}
	for i, n := range c.N {
		if to := int64(i) + slot - c.Last; to <= slots {
			moved.N[to] = n
		}
	}
	return moved
}

// remaining says how many more fit now and, when none does, in how many slots one
// will.
func (c counts) remaining(limit int) (int, int64) {
	used := 0
	for _, n := range c.N {
		used += n
	}
	if used < limit {
		return limit - used, 0
	}
	for age := slots; age >= 0; age-- {
		if used -= c.N[age]; used < limit {
			return 0, int64(slots - age + 1)
		}
	}
	return 0, slots + 1
}

type limiter struct {
	db     *sqlx.DB
	limits Limits
	d      database.Dialect
	shared *groupCommit
}

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

// grant is what Take let through, and when another will fit.
type grant struct {
	taken []Address
	wait  time.Duration
	at    int64 // the database's time, Unix milliseconds
}

// take lets as many of the recipients through as the limits have space for, and
// counts them. One transaction locks all buckets in the order of their names.
func (l *limiter) take(ctx context.Context, recipients []Address) (grant, error) {
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

var errRowsMissing = errors.New("a mail limit has no row yet")

func slotMillis(w window) int64 { return w.length.Milliseconds() / slots }

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
func (l *limiter) transaction(ctx context.Context, names []string, decide func(map[string]counts, int64) grant) (grant, error) {
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
