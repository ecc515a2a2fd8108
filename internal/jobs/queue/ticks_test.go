package queue

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// TestTickedKnowsTheSchedulesJobs tells a job of the schedule from one that was
// run by hand, and forgets it after a day.
func TestTickedKnowsTheSchedulesJobs(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			now := time.Now()
			f.tables.Options.DatabaseClock = func() time.Time { return now }
			j := tablestest.Job("{}")
			uuids := map[string]string{}
			for i, outcome := range []string{"enqueued", "manual"} {
				receipt, won,
					err := f.TakeTick(bg, jobs.TickRecord{Entry: "e", Tick: now.Add(time.Duration(i) * time.Second),
					At: now, Outcome: outcome}, &j)
				if err != nil || !won {
					t.Fatal(won, err)
				}
				uuids[outcome] = receipt.UUID
			}
			for uuid, want := range map[string]bool{uuids["enqueued"]: true, uuids["manual"]: false, "another": false,
				"": false} {
				if got, err := f.Ticked(bg, uuid); got != want || err != nil {
					t.Errorf("%q: %v, %v", uuid, got, err)
				}
			}
			now = now.Add(25 * time.Hour)
			if got, err := f.Ticked(bg, uuids["enqueued"]); got || err != nil {
				t.Errorf("a day later: %v, %v", got, err)
			}
		})
	}
}
