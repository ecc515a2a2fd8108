package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A dependency that is out all night costs no job that needs it an attempt: not
// those that wait, and not the one that is let through to try. When it is back,
// by a try or by hand, all that waited for it is due at once, and nothing else.
func TestAnOpenBreakerCostsNoAttempt(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, back := range []string{"by a try", "by hand"} {
			t.Run(string(engine)+"/"+back, func(t *testing.T) {
				const host = "smtp:mail.example"
				s := newSite(t, engine)
				s.kind.Policy = jobs.Policy{MaxAttempts: 2, Backoff: jobs.Fixed(time.Hour)}
				store, _ := s.store(t, s.DB)
				breakers := breaker.New(s.DB, breaker.Config{Failures: 1, Recovered: store.RunWaiting})
				out := errors.New("connection refused")
				s.run = func(ctx context.Context) error {
					if err := breakers.Allow(ctx, host); err != nil {
						return err
					}
					return errors.Join(out, breakers.Record(ctx, host, out))
				}
				tried, failed, waiting := s.kind.New(struct{}{}), s.kind.New(struct{}{}), s.kind.New(struct{}{})
				for _, n := range []jobs.Spec{failed, tried, waiting} {
					if _, err := store.Enqueue(t.Context(), n); err != nil {
						t.Fatal(err)
					}
				}
				s.runs(t) // the first fails and opens the breaker: its attempt is its own
				s.runs(t)
				s.runs(t)
				s.charged(t, 1, 0, "retried released released")
				for range 4 {
					s.MustExec("UPDATE cmsjobs_breakers SET retry_at = 1")
					s.MustExec("UPDATE jobs SET available_at = 1 WHERE id = 2")
					s.runs(t)
				}
				s.charged(t, 1, 0, "retried released released released released released released")
				s.due(t, 0)

				var err error
				if back == "by hand" {
					_, err = breakers.Reset(t.Context(), host)
				} else {
					err = breakers.Record(t.Context(), host, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				s.due(t, 2)
			})
		}
	}
}

// due counts the jobs that may run now.
func (s *site) due(t *testing.T, want int) {
	t.Helper()
	var n int
	if err := s.Get(&n, s.Rebind("SELECT COUNT(*) FROM jobs WHERE reserved_at IS NULL AND available_at <= ?"),
		time.Now().Unix()+1); err != nil || n != want {
		t.Errorf("%d jobs are due, want %d, %v", n, want, err)
	}
}
