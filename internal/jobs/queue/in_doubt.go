package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// inDoubtRetryDelay is the time between two looks at a claim in doubt: the server
// may still be at work on the statement whose answer was lost.
const inDoubtRetryDelay = time.Second

// recordInDoubt notes an unclear claim of rows.
func (s *Store) recordInDoubt(c *claim, rows []*tables.Candidate, until int64) {
	now := s.tables.Options.Clock()
	retryAt := now
	if s.tables.Layout.Name() == tables.Stock {
		retryAt = now.Add(c.r.Lease * 3 / 4)
	}
	for _, x := range rows {
		s.inDoubt[x.ID] = inDoubtClaim{row: x, token: c.token, until: until, retryAt: retryAt,
			expiresAt: now.Add(c.r.Lease)}
	}
}

// resolve releases what unclear claims turn out to hold.
func (s *Store) resolve(ctx context.Context) error {
	for id, d := range s.inDoubt {
		now := s.tables.Options.Clock()
		if now.Before(d.retryAt) {
			continue
		}
		n, err := s.releaseInDoubt(ctx, d)
		if err != nil {
			return fmt.Errorf("releasing what an unanswered claim holds: %w", err)
		}
		if d.retryAt = now.Add(inDoubtRetryDelay); n > 0 || d.retryAt.After(d.expiresAt) {
			delete(s.inDoubt, id)
		} else {
			s.inDoubt[id] = d
		}
	}
	return nil
}

// releaseInDoubt undoes one row's claim, if it is as the claim left it.
func (s *Store) releaseInDoubt(ctx context.Context, d inDoubtClaim) (n int64, err error) {
	l := jobs.Lease{ID: d.row.ID, Token: d.token, Attempt: d.row.Attempts + 1, ReservedAt: d.until}
	set, args := s.tables.Layout.Release("", jobs.Settlement{Outcome: jobs.Released}, true)
	cond, more := s.tables.Layout.Guard(l, nil)
	err = s.tables.InTx(ctx, "releasing a job", func(t tables.Transaction) error {
		if n, err = s.tables.Exec(ctx, t.Main, fmt.Sprintf("UPDATE %s SET %s WHERE id = %d AND %s",
			s.tables.Layout.Table().Name, set, l.ID, cond), append(args, more...)...); err != nil || n == 0 {
			return err
		}
		_, err = s.tables.Exec(ctx, t.Own, "UPDATE cmsjobs_permits SET expires_at = 0, job_id = 0, token = '' WHERE "+
			"token = ? AND job_id = ?", tables.RandomPart(d.token), l.ID)
		return err
	})
	return n, err
}

// noteInDoubt notes the claim of rows where err leaves its outcome open.
func (s *Store) noteInDoubt(c *claim, rows []*tables.Candidate, until int64, err error) error {
	if database.Classify(err).Unclear() && !errors.Is(err, errContended) {
		s.recordInDoubt(c, rows, until)
	}
	return err
}

// errContended says that some of the candidates are no longer as they were
// read: the transaction is undone and fewer are tried.
var errContended = errors.New("another worker was faster")
