package history

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// At each step, what was enqueued is what waits, runs, has failed, was done or
// was cancelled.
func TestAccountsBalance(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			const enqueued = 6
			balance := func(when string) {
				t.Helper()
				s, err := f.Stats(bg)
				if err != nil {
					t.Fatal(err)
				}
				if sum := s.Queued + s.Delayed + s.Processing + s.Failed + s.Completed + s.Cancelled; sum != enqueued {
					t.Errorf("%s: %+v are %d jobs, want %d", when, s, sum, enqueued)
				}
			}
			f.MustEnqueue(one(`1`), one(`2`), one(`3`), one(`4`), one(`5`), one(`6`))
			balance("enqueued")
			got := f.MustClaim(5)
			balance("claimed")
			for i, outcome := range []jobs.Outcome{jobs.Completed, jobs.Retried, jobs.Released, jobs.Failed,
				jobs.Cancelled} {
				f.MustSettle(tablestest.End(got[i], outcome))
				balance(outcome.String())
			}
		})
	}
}
