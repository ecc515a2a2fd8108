package analytics

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// saltLife is how long after a day's beginning its salt may be needed: late
// views of the day before still find it. Then nobody can tell any more which
// address a visitor had.
const saltLife = 48 * time.Hour

// salts keeps the random salt of each day in the database, where all
// collectors of a site find the same one.
type salts struct {
	db  *sqlx.DB
	now func() time.Time

	mu    sync.Mutex
	known map[string][]byte
}

func newSalts(db *sqlx.DB, now func() time.Time) *salts {
	return &salts{db: db, now: now, known: map[string][]byte{}}
}

// of returns the salt of a day, making it when it is the first.
func (s *salts) of(ctx context.Context, day string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if salt, ok := s.known[day]; ok {
		return salt, nil
	}
	salt, err := s.load(ctx, day)
	if errors.Is(err, sql.ErrNoRows) {
		fresh := make([]byte, 32)
		_, _ = rand.Read(fresh) // crypto/rand never fails (Go 1.24)
		if err = s.save(ctx, day, fresh); err == nil {
			salt, err = s.load(ctx, day) // another collector may have been first
		}
	}
	if err != nil {
		return nil, fmt.Errorf("finding the salt of %s: %w", day, err)
	}
	if len(s.known) > 4 {
		clear(s.known)
	}
	s.known[day] = salt
	return salt, nil
}

func (s *salts) load(ctx context.Context, day string) (salt []byte, err error) {
	err = s.db.GetContext(ctx, &salt, s.db.Rebind("SELECT salt FROM cmsjobs_analytics_salts WHERE day = ?"), day)
	return salt, err
}

func (s *salts) save(ctx context.Context, day string, salt []byte) error {
	expires := s.now().Add(saltLife).Unix()
	_, err := s.db.ExecContext(ctx,
		s.db.Rebind(database.Of(s.db).InsertIgnore("cmsjobs_analytics_salts", "day, salt, expires", "(?, ?, ?)")), day,
		salt, expires)
	return err
}

// destroy removes the salts whose time is over, here and in the database.
func (s *salts) destroy(ctx context.Context) error {
	s.mu.Lock()
	clear(s.known)
	s.mu.Unlock()
	if _, err := s.db.ExecContext(ctx, s.db.Rebind("DELETE FROM cmsjobs_analytics_salts WHERE expires <= ?"),
		s.now().Unix()); err != nil {
		return fmt.Errorf("destroying old salts: %w", err)
	}
	return nil
}

// visitor is the day's name of a visitor.
func visitor(salt []byte, host, address, agent string) (v [16]byte) {
	h := sha256.New()
	h.Write(salt)
	for _, part := range []string{host, address, agent} {
		h.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		h.Write([]byte(part))
	}
	copy(v[:], h.Sum(nil))
	return v
}
