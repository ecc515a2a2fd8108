package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Renew implements jobs.Source.
func (s *Store) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	renewed, err := s.renewals.Renew(ctx, leases, length, func(expires int64) error {
		return s.renewPermits(ctx, leases, expires)
	})
	return renewed, s.tables.NoteTrouble(err)
}

// renewPermits extends the permits of limited types with their jobs.
func (s *Store) renewPermits(ctx context.Context, leases []jobs.Lease, expires int64) error {
	s.mu.Lock()
	limited := len(s.permits) > 0
	s.mu.Unlock()
	if !limited {
		return nil
	}
	byToken := map[string][]int64{}
	for _, l := range leases {
		token := tables.RandomPart(tables.TokenOf(l))
		byToken[token] = append(byToken[token], l.ID)
	}
	for token, list := range byToken {
		in, args := s.tables.Dialect.In("job_id", list)
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB,
			"UPDATE cmsjobs_permits SET expires_at = ? WHERE token = ? AND "+in,
			append([]any{expires, token}, args...)...); err != nil {
			return fmt.Errorf("renewing permits: %w", err)
		}
	}
	return nil
}
