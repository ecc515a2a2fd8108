package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// count lets decide change the rows, which the batch writes when it ends. Those
// that a mail before it in the same batch has locked are not read again.
func (l *limiter) count(ctx context.Context, b *batch, names []string, decide func(map[string]counts, int64) grant) (
	grant, error) {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, there := b.limits[name]
		return there
	})
	if len(missing) > 0 {
		if err := l.read(ctx, b, missing); err != nil {
			return grant{}, err
		}
	}
	now := int64(0)
	rows := make(map[string]counts, len(names))
	for _, name := range names {
		rows[name] = b.limits[name].counts
		now = max(now, b.limits[name].now)
	}
	g := decide(rows, now)
	for _, name := range names {
		if was := b.limits[name]; rows[name] != was.counts {
			b.limits[name] = limitRow{rows[name], now, true}
		}
	}
	return g, nil
}

// read locks rows in the order of their names. The time is read after the
// locks were won: waiting for them takes time.
func (l *limiter) read(ctx context.Context, b *batch, names []string) error {
	clock := l.d.Clock
	if !l.d.ClockAfterLock {
		clock = "0"
	}
	query, args, err := sqlx.In("SELECT bucket, counts, "+clock+" AS now FROM cmsjobs_mail_limits WHERE bucket IN "+
		"(?) ORDER BY bucket"+l.d.ForUpdate, names)
	if err != nil {
		return err
	}
	tx, err := b.begin(ctx)
	if err != nil {
		return err
	}
	var found []struct {
		Bucket, Counts string
		Now            int64
	}
	if err := tx.SelectContext(ctx, &found, tx.Rebind(query), args...); err != nil {
		return fmt.Errorf("locking the mail limits: %w", err)
	}
	if len(found) < len(names) {
		return errRowsMissing
	}
	var now int64
	if !l.d.ClockAfterLock {
		if err := tx.GetContext(ctx, &now, "SELECT "+l.d.Clock); err != nil {
			return fmt.Errorf("asking the database for its time: %w", err)
		}
	}
	for _, row := range found {
		var c counts
		if err := json.Unmarshal([]byte(row.Counts), &c); err != nil {
			return fmt.Errorf("the mail limit %s is not readable (delete its row): %w", row.Bucket, err)
		}
		b.limits[row.Bucket] = limitRow{counts: c, now: max(now, row.Now)}
	}
	return nil
}

type limiter struct {
	db     *sqlx.DB
	limits Limits
	d      database.Dialect
	shared *groupCommit
}

// grant is what Take let through, and when another will fit.
type grant struct {
	taken []address.Address
	wait  time.Duration
	at    int64 // the database's time, Unix milliseconds
}

var errRowsMissing = errors.New("a mail limit has no row yet")
