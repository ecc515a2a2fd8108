package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"
)

// tries is how often a transaction is made that a deadlock, or a lock that was
// waited for too long, undid.
const tries = 8

// repeated runs fn until it is not undone by the database's locks.
func repeated(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || !undone(err) || try == tries {
			return err
		}
		if slept := sleep(ctx, time.Duration(rand.Int64N(int64(5*time.Millisecond)<<try))); slept != nil {
			return errors.Join(slept, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// mysqlUndone is how go-sql-driver/mysql writes a deadlock, a lock time-out and
// what Galera and TiDB undo.
var mysqlUndone = regexp.MustCompile(`^Error (1213|1205|1020|1047|8022|9007)\b`)

// undone says that nothing was written and all may be repeated. The drivers are
// the caller's: their errors are known by what they say of themselves.
func undone(err error) bool {
	var postgres interface{ SQLState() string } // *pgconn.PgError
	if errors.As(err, &postgres) {
		return slices.Contains([]string{"40001", "40P01", "55P03"}, postgres.SQLState())
	}
	var lite interface{ Code() int } // *sqlite.Error: BUSY and LOCKED
	if errors.As(err, &lite) {
		return lite.Code()&0xff == 5 || lite.Code()&0xff == 6
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if mysqlUndone.MatchString(err.Error()) {
			return true
		}
	}
	return false
}
