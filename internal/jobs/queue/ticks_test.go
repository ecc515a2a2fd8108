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

// TestATickSaysThatItsJobDidOnlyAPart reads what became of ticks: only the status of the
// result itself counts, and a job that will be tried again is no part.
func TestATickSaysThatItsJobDidOnlyAPart(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			f := openFixture(t, v, v.Database(t))
			now := time.Now()
			f.tables.Options.DatabaseClock = func() time.Time { return now }
			for i, c := range []struct {
				outcome      jobs.Outcome
				result, want string
			}{
				{jobs.Failed, `{"id":"b","status":"partial"}`, "partial"}, {jobs.Completed, `{"status":"partial"}`, "partial"},
				{jobs.Completed, `{"status":"complete","parts":[{"status":"partial"}]}`, "completed"},
				{jobs.Failed, "", "failed"}, {jobs.Retried, `{"status":"partial"}`, "retried"},
			} {
				j := tablestest.Job("{}")
				receipt, won, err := f.TakeTick(bg, jobs.TickRecord{Entry: "e", Tick: now.Add(time.Duration(i) * time.Second),
					At: now.Add(time.Duration(i) * time.Second), Outcome: "enqueued"}, &j)
				if err != nil || !won {
					t.Fatal(won, err)
				}
				j.UUID = receipt.UUID
				if err := f.RecordAtOnce(bg, j, jobs.Settlement{Claimed: jobs.Claimed{Job: jobs.Job{UUID: j.UUID, Type: j.Type,
					Queue: j.Queue, Attempt: 1, MaxAttempts: 1}}, Outcome: c.outcome, Result: []byte(c.result), Worker: "w",
					Started: now, Duration: time.Second}); err != nil {
					t.Fatal(err)
				}
				list, err := f.Ticks(bg, "e", jobs.Page{Limit: 1})
				if err != nil || len(list.Items) != 1 || list.Items[0].Outcome != c.want ||
					list.Items[0].Duration != time.Second {
					t.Errorf("%v with %s: %+v, %v; want %s", c.outcome, c.result, list.Items, err, c.want)
				}
			}
		})
	}
}
