package main

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/sqlstore"
)

// TestTheTrailTellsOfJobs lets a person enqueue a job that fails for good, and
// the schedule enqueue one of the kinds that are told of.
func TestTheTrailTellsOfJobs(t *testing.T) {
	config := `
activity: {enqueued: [cmsjobs.probe], share: 0}
schedule: {entries: {often: {cron: "* * * * *", kind: cmsjobs.probe}}}
notify: {mail: false, cms: false}
`
	s := startService(t, config, database(t, jobstest.SQLite, sqlstore.Stock))
	admin := bearer(s.token("admin"))
	var made struct{ ID string }
	s.ask(201, "POST", "/api/v1/jobs", `{"topic":"cmsjobs.probe","payload":{"fail":"no luck\nat line 1"},"maxRetries":0}`, admin, &made)
	s.ask(201, "POST", "/api/v1/schedules/often/run", "", admin, nil)
	type deed struct {
		Actor, Action, Target, Detail string
		Status                        int
	}
	trail := func(action string) []deed {
		var list struct{ Items []deed }
		s.ask(200, "GET", "/api/v1/audit?action="+action, "", admin, &list)
		return list.Items
	}
	for deadline := time.Now().Add(2 * time.Minute); len(trail("job_failed")) == 0 || len(trail("job_enqueued")) == 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the trail: %+v %+v\n%s", trail("job_failed"), trail("job_enqueued"), s.log())
		}
	}
	if got, want := trail("job_failed")[0], (deed{"cmsjobs", "job_failed", made.ID, "cmsjobs.probe: no luck", 500}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := trail("job_enqueued")[0], (deed{"cmsjobs", "job_enqueued", "often", "cmsjobs.probe by the schedule", 201}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if asked := trail("jobs.enqueue"); len(asked) != 1 || asked[0].Actor != "test" {
		t.Errorf("what the person asked for: %+v", asked)
	}
}
