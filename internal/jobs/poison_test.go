package jobs_test

import (
	"context"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A row that was started as often as it may be, by workers that died of it, is
// failed and not run; one whose handler panics costs an attempt and nothing else.
func TestPoisonCostsItsJobOnly(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine)
			ran := 0
			s.run = func(context.Context) error { ran++; return nil }
			s.MustExec(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default',
				'{"type":"test.sql"}', 2, 1, 1)`)
			s.runs(t)
			s.charged(t, 0, 1, "failed")
			if ran != 0 {
				t.Error("a job that killed all its workers was run once more")
			}
			s.run = func(context.Context) error { panic("poison") }
			s.MustExec(`INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default',
				'{"type":"test.sql"}', 0, 1, 1)`)
			s.runs(t)
			s.charged(t, 1, 1, "failed retried")
		})
	}
}
