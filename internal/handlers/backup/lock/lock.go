package lock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The times of a lock, by the database's clock.
const (
	// Lease is how long a lock holds without a renewal.
	Lease = 30 * time.Second
	// renewEvery leaves space for several failed renewals.
	renewEvery = 5 * time.Second
	// releaseTime is how long releasing a lock may take.
	releaseTime = 10 * time.Second
)

// Holder says who has a lock.
type Holder struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`    // and process id
	Purpose string    `json:"purpose"` // for people
	Started time.Time `json:"started"`
	Expires time.Time `json:"expires"` // if it is not renewed
}

// HeldError says that another holds the lock.
type HeldError struct{ Holder }

// Error names the holder, and when a dead one's lock ends.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s runs on %s since %s UTC; if that process is dead, the lock ends by itself at %s UTC",
		e.Purpose, e.Host, e.Started.UTC().Format(time.DateTime), e.Expires.UTC().Format(time.TimeOnly))
}

// ErrLost says that a lock ended while it was held: its holder was cut off from
// the database for longer than the lease, and another took it.
var ErrLost = errors.New("the lock was lost to another process")

// Table is the table of locks.
type Table struct {
	DB     *sqlx.DB
	Logger *slog.Logger
}

// Lock is a lock that this process holds.
type Lock struct {
	Request
	table  *Table
	holder string
	host   string
	stop   context.CancelFunc
	done   chan struct{}
}

// clock is the database's time in Unix milliseconds as an SQL expression. It is of
// the statement's start: a take that waited for a row judges the lease by the time
// before, which never ends another's lease early.
func (t *Table) clock() string { return database.Of(t.DB).Millis }

// Request says which lock is wanted.
type Request struct {
	Name    string
	Purpose string // for people
	// Durable makes the row again when it vanished while the lock was held: a
	// restore may replace the table. Otherwise such a lock is lost.
	Durable bool
}

// Acquire takes a lock and renews it until Release. The context that it returns
// ends with ErrLost when another took the lock. A lock that another holds is a
// *HeldError.
func (t *Table) Acquire(ctx context.Context, q Request) (context.Context, *Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	l := &Lock{table: t, Request: q, holder: rand.Text(), host: fmt.Sprintf("%.150s (process %d)", host, os.Getpid()),
		done: make(chan struct{})}
	if err := t.take(ctx, l); err != nil {
		return ctx, nil, err
	}
	held, lose := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go func() {
		defer close(l.done)
		defer lose(nil)
		l.renew(renewing, lose)
	}()
	return held, l, nil
}

func (t *Table) take(ctx context.Context, l *Lock) error {
	insert := database.Of(t.DB).InsertIgnore("cmsjobs_backup_locks", "name, holder, host, purpose, started_at, "+
		"expires_at", "(?, '', '', '', 0, 0)")
	if _, err := t.DB.ExecContext(ctx, t.DB.Rebind(insert), l.Name); err != nil {
		return fmt.Errorf("preparing the lock %s: %w", l.Name, err)
	}
	now := t.clock()
	result, err := t.DB.ExecContext(ctx, t.DB.Rebind("UPDATE cmsjobs_backup_locks SET holder = ?, host = ?, purpose "+
		"= ?, started_at = "+now+", expires_at = "+now+" + ? WHERE name = ? AND expires_at <= "+now),
		l.holder, l.host, fmt.Sprintf("%.190s", l.Purpose), Lease.Milliseconds(), l.Name)
	if err != nil {
		return fmt.Errorf("taking the lock %s: %w", l.Name, err)
	}
	n, err := result.RowsAffected()
	if err != nil || n == 1 {
		return err
	}
	h, err := t.Holder(ctx, l.Name)
	if err != nil {
		return err
	}
	return &HeldError{h}
}

// Holder says who holds a lock, or held it last.
func (t *Table) Holder(ctx context.Context, name string) (Holder, error) {
	h := Holder{Name: name}
	var started, expires int64
	err := t.DB.QueryRowContext(ctx, t.DB.Rebind("SELECT host, purpose, started_at, expires_at FROM "+
		"cmsjobs_backup_locks WHERE name = ?"), name).
		Scan(&h.Host, &h.Purpose, &started, &expires)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return h, fmt.Errorf("asking who holds the lock %s: %w", name, err)
	}
	h.Started, h.Expires = time.UnixMilli(started).UTC(), time.UnixMilli(expires).UTC()
	return h, nil
}

// Held says whether a process holds a lock now.
func (t *Table) Held(ctx context.Context, name string) (bool, error) {
	var n int
	err := t.DB.GetContext(ctx, &n, t.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_backup_locks WHERE name = ? AND "+
		"expires_at > "+t.clock()), name)
	if err != nil {
		return false, fmt.Errorf("asking whether the lock %s is held: %w", name, err)
	}
	return n > 0, nil
}

// Note writes a row that holds nothing off: that something began which must
// come to an end. Forget removes it, Holder reads it.
func (t *Table) Note(ctx context.Context, name, purpose string) error {
	if err := t.Forget(ctx, name); err != nil {
		return err
	}
	_, err := t.DB.ExecContext(ctx, t.DB.Rebind("INSERT INTO cmsjobs_backup_locks (name, holder, host, purpose, "+
		"started_at, expires_at) VALUES (?, '', '', ?, "+t.clock()+", 0)"), name, purpose)
	if err != nil {
		return fmt.Errorf("noting %s: %w", name, err)
	}
	return nil
}

// renew extends the lock until it is stopped. A database that does not answer
// is asked again: meanwhile nobody else can take the lock from it either.
func (l *Lock) renew(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := l.expire(ctx, l.table.clock()+fmt.Sprintf(" + %d", Lease.Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.table.Logger.WarnContext(ctx, "lock not renewed", "event", "lock.renew_failed",
				"lock", l.Name, "error", err)
		case n == 0 && l.Durable && l.table.retake(ctx, l):
		case n == 0:
			l.table.Logger.ErrorContext(ctx, "lock lost", "event", "lock.lost", "lock", l.Name)
			lose(fmt.Errorf("%w: %s", ErrLost, l.Name))
			return
		}
	}
}

// retake makes the row of a lock again, where there is none any more.
func (t *Table) retake(ctx context.Context, l *Lock) bool {
	h, err := t.Holder(ctx, l.Name)
	return err == nil && h.Expires.UnixMilli() == 0 && t.take(ctx, l) == nil
}

func (l *Lock) expire(ctx context.Context, at string) (int64, error) {
	db := l.table.DB
	result, err := db.ExecContext(ctx, db.Rebind("UPDATE cmsjobs_backup_locks SET expires_at = "+at+
		" WHERE name = ? AND holder = ?"), l.Name, l.holder)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Release releases the lock. It is meant to be deferred: a failure is logged,
// and the lock ends by itself. When ctx has ended, it waits a moment only.
func (l *Lock) Release(ctx context.Context) {
	l.stop()
	<-l.done
	ctx, cancel := jobs.Outlasting(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, releaseTime)
	defer cancel()
	if _, err := l.expire(ctx, "0"); err != nil {
		l.table.Logger.WarnContext(ctx, "lock not released; it expires",
			"event", "lock.release_failed", "lock", l.Name, "seconds", Lease.Seconds(), "error", err)
	}
}

// Remove releases the lock and removes its row. When ctx has ended, it waits a moment only.
func (l *Lock) Remove(ctx context.Context) {
	l.Release(ctx)
	ctx, cancel := jobs.Outlasting(ctx)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, releaseTime)
	defer cancel()
	if err := l.table.Forget(ctx, l.Name); err != nil {
		l.table.Logger.WarnContext(ctx, "row of a lock not removed", "event", "lock.release_failed",
			"lock", l.Name, "error", err)
	}
}

// Dead lists the locks under a prefix whose holders have not renewed them
// since their lease ended, and which were never released by Remove.
func (t *Table) Dead(ctx context.Context, prefix string) ([]Holder, error) {
	rows, err := t.DB.QueryContext(ctx, t.DB.Rebind("SELECT name, host, purpose, started_at, expires_at FROM "+
		"cmsjobs_backup_locks WHERE SUBSTR(name, 1, ?) = ? AND expires_at <= "+t.clock()+" ORDER BY name"),
		len(prefix), prefix)
	if err != nil {
		return nil, fmt.Errorf("listing dead locks: %w", err)
	}
	defer rows.Close()
	var dead []Holder
	for rows.Next() {
		var h Holder
		var started, expires int64
		if err := rows.Scan(&h.Name, &h.Host, &h.Purpose, &started, &expires); err != nil {
			return nil, fmt.Errorf("listing dead locks: %w", err)
		}
		h.Started, h.Expires = time.UnixMilli(started).UTC(), time.UnixMilli(expires).UTC()
		dead = append(dead, h)
	}
	return dead, rows.Err()
}

// Forget removes the row of a lock that nobody holds.
func (t *Table) Forget(ctx context.Context, name string) error {
	_, err := t.DB.ExecContext(ctx, t.DB.Rebind("DELETE FROM cmsjobs_backup_locks WHERE name = ? AND expires_at <= "+
		t.clock()), name)
	if err != nil {
		return fmt.Errorf("removing the lock %s: %w", name, err)
	}
	return nil
}
