package phprows

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// Renew implements php.Source.
func (s *Store) Renew(ctx context.Context, leases []jobs.Lease, lease time.Duration) ([]jobs.Lease, error) {
	renewed, err := s.renewals.Renew(ctx, leases, lease, nil)
	if err != nil {
		return nil, s.NoteTrouble(fmt.Errorf("PHP's jobs: %w", err))
	}
	return renewed, nil
}

// Release implements php.Source.
func (s *Store) Release(ctx context.Context, list []php.Job) error {
	leases := make([]jobs.Lease, len(list))
	for i := range list {
		leases[i] = list[i].Lease
	}
	for _, g := range s.renewals.ByGuard(leases) {
		in, inArgs := s.Dialect.In("id", g.IDs)
		set, args := s.Layout.Release(s.ReleasedDue(), jobs.Settlement{Outcome: jobs.Released}, true)
		err := database.Retry(ctx, "releasing jobs of PHP", func() error {
			_, err := s.Exec(ctx, s.DB, "UPDATE "+s.Layout.Table().Name+" SET "+set+" WHERE "+in+" AND "+g.Cond,
				slices.Concat(args, inArgs, g.Args)...)
			return err
		})
		if err != nil {
			return s.NoteTrouble(err)
		}
		s.renewals.Forget(g.IDs...)
	}
	return nil
}
