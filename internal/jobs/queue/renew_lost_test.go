package queue

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// The answer to one renewal is lost, and the next renewals do not arrive: the
// lease is still this worker's, and its run can be renewed and ended.
func TestALeaseSurvivesRenewalsThatAreLost(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			db := v.Database(t)
			for name, fates := range map[string][]fate{
				"done and lost":              {unheard, undone},
				"lost and done":              {undone, unheard},
				"done, lost and lost":        {unheard, undone, undone},
				"done, done, lost, and done": {unheard, unheard, undone, unheard},
			} {
				t.Run(name, func(t *testing.T) { renewOutOfEarshot(openFixture(t, v, db), fates) })
			}
		})
	}
}

func renewOutOfEarshot(f *fixture, fates []fate) {
	l := f.losingStore()
	f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
	got := f.MustClaim(2)
	held := []jobs.Lease{got[0].Lease, got[1].Lease}
	for _, what := range fates {
		f.Clock.Ahead += 2 * time.Second // each renewal writes another value
		l.next.Store(int32(what))
		if _, err := f.Renew(context.Background(), held, lease); database.Classify(err) != database.Unknown {
			f.T.Fatalf("%v is %v", err, database.Classify(err))
		}
	}
	f.Clock.Ahead += 2 * time.Second
	renewed, err := f.Renew(context.Background(), held[:1], lease)
	if err != nil || renewed[0] == (jobs.Lease{}) {
		f.T.Fatalf("renewed %+v, %v: the lease is said to be lost, though no other worker had the job", renewed, err)
	}
	for i, c := range got { // one renewed, one in doubt
		if i == 0 {
			c.Lease = renewed[0]
		}
		if err := f.MustSettle(tablestest.End(c, jobs.Completed))[0]; err != nil {
			f.T.Errorf("the end of job %d: %v", i, err)
		}
	}
}
