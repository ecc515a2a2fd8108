package sqlstore

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// At each step, what was enqueued is what waits, runs, has failed, was done or
// was cancelled.
func TestAccountsBalance(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := variant{engine: engine, layout: Stock, mode: Auto}
			f := v.fixture(t, v.database(t))
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
			f.enqueue(job(`1`), job(`2`), job(`3`), job(`4`), job(`5`), job(`6`))
			balance("enqueued")
			got := f.claim(5)
			balance("claimed")
			for i, verdict := range []jobs.Outcome{jobs.Completed, jobs.Retried, jobs.Released, jobs.Failed, jobs.Cancelled} {
				f.settle(end(got[i], verdict))
				balance(verdict.String())
			}
		})
	}
}
