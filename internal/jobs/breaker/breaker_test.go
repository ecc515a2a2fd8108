package breaker_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

const host = "smtp:mail.example.com:587"

var errOut = errors.New("connection refused\nbecause it is out")

func onEach(t *testing.T, c breaker.Config, test func(t *testing.T, db *jobstest.Database, b *breaker.Breakers)) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			test(t, db, breaker.New(db.DB, c))
		})
	}
}

func record(t *testing.T, b *breaker.Breakers, times int, err error) {
	t.Helper()
	for range times {
		if err := b.Record(t.Context(), host, err); err != nil {
			t.Fatal(err)
		}
	}
}

func TestItOpensAfterFailuresInARowAndChargesNoAttempt(t *testing.T) {
	onEach(t, breaker.Config{Failures: 3}, func(t *testing.T, _ *jobstest.Database, b *breaker.Breakers) {
		record(t, b, 2, errOut)
		record(t, b, 1, nil) // not in a row
		record(t, b, 2, errOut)
		if err := b.Allow(t.Context(), host); err != nil {
			t.Fatalf("closed: %v", err)
		}
		record(t, b, 1, errOut)
		err := b.Allow(t.Context(), host)
		wait, ok := jobs.AsRetryAfter(err)
		if !ok || !errors.Is(err, breaker.ErrOpen) || wait <= 0 || wait > 30*time.Second ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("open: %v (wait %s)", err, wait)
		}
		if err := b.Allow(t.Context(), "another"); err != nil {
			t.Errorf("another dependency is held back: %v", err)
		}
		list, err := b.List(t.Context())
		if err != nil || len(list) != 1 || list[0].State != breaker.Open || list[0].Dependency != host ||
			list[0].RetryAt.IsZero() {
			t.Errorf("List: %+v, %v", list, err)
		}
		if was, err := b.Reset(t.Context(), host); err != nil || !was || b.Allow(t.Context(), host) != nil {
			t.Errorf("Reset: %v, %v", was, err)
		}
	})
}

// expire makes the wait of the breaker over, as time would.
func expire(t *testing.T, db *jobstest.Database) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "UPDATE cmsjobs_breakers SET retry_at = 1"); err != nil {
		t.Fatal(err)
	}
}

func TestOneProbeInTheWholeFleet(t *testing.T) {
	onEach(t, breaker.Config{Failures: 1}, func(t *testing.T, db *jobstest.Database, b *breaker.Breakers) {
		record(t, b, 1, errOut)
		expire(t, db)
		var through atomic.Int32
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				switch err := b.Allow(t.Context(), host); {
				case err == nil:
					through.Add(1)
				case !errors.Is(err, breaker.ErrOpen):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := through.Load(); n != 1 {
			t.Errorf("%d probes were let through", n)
		}
		record(t, b, 1, nil)
		if err := b.Allow(t.Context(), host); err != nil {
			t.Errorf("the probe worked, and yet: %v", err)
		}
	})
}

func TestAFailedProbeDoublesTheWaitAndADeadOneIsReplaced(t *testing.T) {
	onEach(t, breaker.Config{Failures: 1, Wait: time.Hour, MaxWait: 3 * time.Hour},
		func(t *testing.T, db *jobstest.Database, b *breaker.Breakers) {
			for trip, want := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 3 * time.Hour} {
				record(t, b, 1, errOut)
				wait, _ := jobs.AsRetryAfter(b.Allow(t.Context(), host))
				if wait > want || wait < want-10*time.Minute {
					t.Errorf("wait %d is %s, want %s", trip, wait, want)
				}
				expire(t, db)
				if err := b.Allow(t.Context(), host); err != nil {
					t.Fatalf("the probe: %v", err)
				}
			}
			expire(t, db) // the prober died without a word
			if err := b.Allow(t.Context(), host); err != nil {
				t.Errorf("nobody probes any more: %v", err)
			}
		})
}

func TestFailuresFarApartDoNotOpenIt(t *testing.T) {
	onEach(t, breaker.Config{Failures: 2}, func(t *testing.T, db *jobstest.Database, b *breaker.Breakers) {
		record(t, b, 1, errOut)
		if _, err := db.ExecContext(t.Context(), "UPDATE cmsjobs_breakers SET first_failure_at = first_failure_at - "+
			"61000"); err != nil {
			t.Fatal(err)
		}
		record(t, b, 1, errOut)
		if err := b.Allow(t.Context(), host); err != nil {
			t.Error(err)
		}
	})
}

func TestConcurrentFailuresAreAllCounted(t *testing.T) {
	onEach(t, breaker.Config{Failures: 1000}, func(t *testing.T, _ *jobstest.Database, b *breaker.Breakers) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				if err := b.Record(t.Context(), host, fmt.Errorf("%d: %w", i, errOut)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if list, err := b.List(t.Context()); err != nil || len(list) != 1 || list[0].Failures != 20 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
