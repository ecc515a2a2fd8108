package breaker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ErrOpen says that a dependency is out and jobs are held back.
var ErrOpen = errors.New("it failed too often and is left alone for a while")

// Config holds the thresholds. Zero fields get the defaults named.
type Config struct {
	// Failures in a row, all within Window, open the breaker: 10 in 60 s.
	Failures int
	Window   time.Duration
	// Wait before the first probe, 30 s. It doubles with each probe that fails,
	// up to MaxWait, 10 min.
	Wait, MaxWait time.Duration
	// ProbeTimeout is how long a probe may take before another caller is let
	// through, 2 min.
	ProbeTimeout time.Duration
	// Recovered is notified of a dependency that is used again after it was out, so
	// that what waited for it runs at once. nil tells nobody.
	Recovered func(ctx context.Context, dependency string) error
	// Logger gets a line when a circuit opens and one when it closes, from the one
	// process of the fleet that opened or closed it. nil discards them.
	Logger *slog.Logger
}

// State of one breaker.
type State string

// The states: closed lets everybody through, open nobody, half-open one probe.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half-open"
)

// Info is what people see of one breaker.
type Info struct {
	Dependency string `json:"dependency"`
	State      State  `json:"status"`
	Failures   int    `json:"failures"` // in a row
	Trips      int    `json:"trips"`    // openings since it last worked
	// RetryAt is when the next probe goes, or, half-open, when it is given up.
	RetryAt   time.Time `json:"retry_at,omitzero"`
	LastError string    `json:"last_error"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
}

// Breakers are all of a fleet.
type Breakers struct {
	db *sqlx.DB
	d  database.Dialect
	c  Config

	mu      sync.Mutex
	healthy map[string]bool // what Allow read last: closed, and no failure counted
}

// maxHealthy bounds what is remembered of dependencies; it is cleared then.
const maxHealthy = 1000

// remember keeps whether a success will have anything to write: Record of a
// healthy dependency, nearly all of them, needs no separate read.
func (b *Breakers) remember(dependency string, healthy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !healthy {
		delete(b.healthy, dependency)
		return
	}
	if b.healthy == nil || len(b.healthy) >= maxHealthy {
		b.healthy = map[string]bool{}
	}
	b.healthy[dependency] = true
}

func (b *Breakers) wasHealthy(dependency string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.healthy[dependency]
}

// New returns the breakers whose rows lie in db.
func New(db *sqlx.DB, c Config) *Breakers {
	defaults := Config{Failures: 10, Window: time.Minute, Wait: 30 * time.Second, MaxWait: 10 * time.Minute,
		ProbeTimeout: 2 * time.Minute}
	if c.Recovered == nil {
		c.Recovered = func(context.Context, string) error { return nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Failures <= 0 {
		c.Failures = defaults.Failures
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Window, defaults.Window}, {&c.Wait, defaults.Wait}, {&c.MaxWait, defaults.MaxWait},
		{&c.ProbeTimeout, defaults.ProbeTimeout}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return &Breakers{db: db, d: database.Of(db), c: c}
}

type row struct {
	Dependency   string
	State        State
	Failures     int
	FirstFailure int64 `db:"first_failure_at"`
	Trips        int
	RetryAt      int64  `db:"retry_at"`
	LastError    string `db:"last_error"`
	ChangedAt    int64  `db:"changed_at"`
	Now          int64
}

// query reads rows with the database's clock: fail waits for a lock before.
func (b *Breakers) query(tail string) string {
	return b.db.Rebind(
		"SELECT dependency, state, failures, first_failure_at, trips, retry_at, last_error, changed_at, " + b.d.Clock +
			" AS now FROM cmsjobs_breakers" + tail)
}

// Allow returns nil when the dependency may be used now. Else the error wraps
// ErrOpen and is marked by jobs.WaitFor.
func (b *Breakers) Allow(ctx context.Context, dependency string) error {
	var r row
	err := b.db.GetContext(ctx, &r, b.query(" WHERE dependency = ?"), key(dependency))
	none := errors.Is(err, sql.ErrNoRows)
	b.remember(dependency, none || (err == nil && r.State == Closed && r.Failures == 0))
	if none || (err == nil && r.State == Closed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking the circuit breaker of %s: %w", dependency, err)
	}
	if r.Now >= r.RetryAt {
		won, err := b.probe(ctx, r)
		if err != nil || won {
			return err
		}
		// another is probing: it will not be long
		r.RetryAt = r.Now + min(b.c.ProbeTimeout, 5*time.Second).Milliseconds()
	}
	wait := time.Duration(r.RetryAt-r.Now) * time.Millisecond
	return jobs.WaitFor(fmt.Errorf("%s: %w; the last error was: %s", dependency, ErrOpen, r.LastError), r.Dependency,
		wait)
}

// probe makes this caller the one that tries: a compare-and-set on retry_at.
func (b *Breakers) probe(ctx context.Context, r row) (bool, error) {
	result, err := b.db.ExecContext(ctx, b.db.Rebind("UPDATE cmsjobs_breakers SET state = ?, retry_at = ?, "+
		"changed_at = ? WHERE dependency = ? AND retry_at = ? AND state <> ?"),
		HalfOpen, r.Now+b.c.ProbeTimeout.Milliseconds(), r.Now, r.Dependency, r.RetryAt, Closed)
	if err != nil {
		return false, fmt.Errorf("probing %s: %w", r.Dependency, err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// Record tells how a use of the dependency ended: nil for success, and for any
// answer that shows that it lives; an error for trouble that may pass. A job
// whose use was a probe is not charged for that (jobs.ProbeFailed).
func (b *Breakers) Record(ctx context.Context, dependency string, failure error) error {
	if failure == nil && b.wasHealthy(dependency) {
		return nil // what failed meanwhile is ended by the next success, whose Allow sees it
	}
	if failure == nil {
		return b.succeed(ctx, dependency)
	}
	b.remember(dependency, false)
	for {
		found, err := b.fail(ctx, dependency, failure)
		if err != nil {
			return err
		}
		if found {
			return nil
		}
		if err := b.makeRow(ctx, dependency); err != nil {
			return fmt.Errorf("making the circuit breaker of %s: %w", dependency, err)
		}
	}
}

// succeed closes the breaker. Of several callers that do so at the same time one
// changes the row, and logs it.
func (b *Breakers) succeed(ctx context.Context, dependency string) error {
	var r row
	err := b.db.GetContext(ctx, &r, b.query(" WHERE dependency = ?"), key(dependency))
	if errors.Is(err, sql.ErrNoRows) || (err == nil && r.State == Closed && r.Failures == 0) {
		return nil
	}
	var changed int64
	if err == nil {
		same := "<>"
		if r.State == Closed {
			same = "=" // what opened since then stays open
		}
		var result sql.Result
		result, err = b.db.ExecContext(ctx, b.db.Rebind("UPDATE cmsjobs_breakers SET state = ?, failures = 0, trips "+
			"= 0, retry_at = 0, changed_at = ? WHERE dependency = ? AND state "+same+" ?"),
			Closed, r.Now, r.Dependency, Closed)
		if err == nil {
			changed, err = result.RowsAffected()
		}
	}
	if err != nil {
		return fmt.Errorf("closing the circuit breaker of %s: %w", dependency, err)
	}
	if r.State == Closed {
		return nil
	}
	if changed > 0 {
		b.logClosed(ctx, r, "a use of it worked")
	}
	return b.c.Recovered(ctx, r.Dependency)
}

func (b *Breakers) logClosed(ctx context.Context, r row, reason string) {
	b.c.Logger.InfoContext(ctx, "circuit closed: jobs that waited for the dependency run", "event", "circuit.closed",
		"dependency", r.Dependency, "reason", reason, "failed_probes", max(r.Trips-1, 0))
}

// fail counts a failure under the row's lock; false says that there is no row.
func (b *Breakers) fail(ctx context.Context, dependency string, failure error) (bool, error) {
	var r row
	var before State
	err := database.InTx(ctx, b.db, "telling the circuit breaker of "+dependency, func(tx *sqlx.Tx) error {
		r = row{}
		if err := tx.GetContext(ctx, &r, b.query(" WHERE dependency = ?"+b.d.ForUpdate), key(dependency)); err != nil {
			return err
		}
		before = r.State
		r = b.c.after(r)
		_, err := tx.ExecContext(ctx, tx.Rebind("UPDATE cmsjobs_breakers SET state = ?, failures = ?, "+
			"first_failure_at = ?, trips = ?, retry_at = ?, last_error = ?, changed_at = ? WHERE dependency = ?"),
			r.State, r.Failures, r.FirstFailure, r.Trips, r.RetryAt, jobs.PlainText(failure.Error(), 500), r.Now,
			r.Dependency)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if before == Closed && r.State == Open {
		b.c.Logger.WarnContext(ctx, "circuit opened: jobs that need the dependency wait", "event", "circuit.opened",
			"dependency", r.Dependency, "failures", r.Failures,
			"probe_in", time.Duration(r.RetryAt-r.Now)*time.Millisecond, "error", jobs.PlainText(failure.Error(), 500))
	}
	if before != Closed {
		jobs.ProbeFailed(ctx, r.Dependency, time.Duration(r.RetryAt-r.Now)*time.Millisecond)
	}
	return true, nil
}

// after is the row's next state when a use has failed now.
func (c Config) after(r row) row {
	if r.Failures == 0 || r.Now-r.FirstFailure > c.Window.Milliseconds() {
		r.Failures, r.FirstFailure = 0, r.Now
	}
	r.Failures++
	switch {
	case r.State == Closed && r.Failures < c.Failures:
	case r.State == Open: // one that began before it opened
	default:
		wait := c.Wait
		for range r.Trips {
			wait = min(2*wait, c.MaxWait)
		}
		r.State, r.Trips, r.RetryAt = Open, r.Trips+1, r.Now+wait.Milliseconds()
	}
	return r
}

func (b *Breakers) makeRow(ctx context.Context, dependency string) error {
	insert := b.d.InsertIgnore("cmsjobs_breakers", "dependency, state, failures, first_failure_at, trips, retry_at, "+
		"last_error, changed_at", "(?, ?, 0, 0, 0, 0, '', 0)")
	_, err := b.db.ExecContext(ctx, b.db.Rebind(insert), key(dependency), Closed)
	return err
}

// List returns every dependency that ever failed, the open ones first.
func (b *Breakers) List(ctx context.Context) ([]Info, error) {
	var rows []row
	if err := b.db.SelectContext(ctx, &rows, b.query(" ORDER BY CASE state WHEN 'closed' THEN 1 ELSE 0 END, "+
		"dependency LIMIT 1000")); err != nil {
		return nil, fmt.Errorf("listing circuit breakers: %w", err)
	}
	list := make([]Info, len(rows))
	for i, r := range rows {
		list[i] = Info{Dependency: r.Dependency, State: r.State, Failures: r.Failures, Trips: r.Trips,
			LastError: r.LastError, ChangedAt: time.UnixMilli(r.ChangedAt).UTC()}
		if r.RetryAt > 0 {
			list[i].RetryAt = time.UnixMilli(r.RetryAt).UTC()
		}
	}
	return list, nil
}

// Reset closes a breaker by hand and says whether there was one.
func (b *Breakers) Reset(ctx context.Context, dependency string) (bool, error) {
	var r row
	err := b.db.GetContext(ctx, &r, b.query(" WHERE dependency = ?"), key(dependency))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	var result sql.Result
	if err == nil {
		result, err = b.db.ExecContext(ctx, b.db.Rebind("DELETE FROM cmsjobs_breakers WHERE dependency = ?"),
			r.Dependency)
	}
	if err != nil {
		return false, fmt.Errorf("resetting the circuit breaker of %s: %w", dependency, err)
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	if r.State != Closed {
		b.logClosed(ctx, r, "reset by hand")
	}
	return true, b.c.Recovered(ctx, r.Dependency)
}

// key is the dependency as the column holds it.
func key(dependency string) string { return jobs.PlainText(dependency, 191) }
