package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Store keeps tokens, sessions, counts and the audit log in our own tables.
type Store struct {
	db  *sqlx.DB
	now func() time.Time
}

// NewStore returns a store over a database in which our migrations ran.
func NewStore(db *sqlx.DB, now func() time.Time) *Store { return &Store{db: db, now: now} }

// Retention says how long rows are kept.
type Retention struct {
	Audit time.Duration // 0 keeps the audit log for ever
}

// sweepBatch bounds what one statement deletes, so that it locks little.
const sweepBatch = 1000

// Sweep deletes what is too old to matter: ended sessions, keys of repeated
// requests after a day, counts of wrong sign-ins, audit entries after their time.
func (s *Store) Sweep(ctx context.Context, keep Retention) error {
	type oldRows struct {
		table, key, moment string
		age                time.Duration
	}
	old := []oldRows{
		{"cmsjobs_sessions", "hash", "created_at", SessionLife},
		{"cmsjobs_idempotency", "id", "created_at", idempotencyLife},
		{"cmsjobs_logins", "subject", "expires_at", 0},
	}
	if keep.Audit > 0 {
		old = append(old, oldRows{"cmsjobs_audit", "id", "at", keep.Audit})
	}
	for _, o := range old {
		statement := s.db.Rebind(database.Of(s.db).DeleteSome(o.table, o.key, o.moment+" < ?", o.moment, sweepBatch))
		for {
			result, err := s.db.ExecContext(ctx, statement, s.millis()-o.age.Milliseconds())
			if err != nil {
				return fmt.Errorf("deleting old rows of %s: %w", o.table, err)
			}
			if n, err := result.RowsAffected(); err != nil || n < sweepBatch {
				break
			}
		}
	}
	return nil
}

func (s *Store) millis() int64 { return s.now().UnixMilli() }

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// insertOnce runs an INSERT that does nothing where the key is taken, and says
// whether it inserted.
func (s *Store) insertOnce(ctx context.Context, table, columns, values string, args ...any) (bool, error) {
	insert := database.Of(s.db).InsertIgnore(table, columns, values)
	result, err := s.db.ExecContext(ctx, s.db.Rebind(insert), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// secret returns n random bytes in hexadecimal.
func secret(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

// Hash is the form in which secrets are stored. They are random and long, so
// that a plain SHA-256 cannot be turned around.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
