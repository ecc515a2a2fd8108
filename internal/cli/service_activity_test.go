package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestTheAuditLogHasJobs lets a person enqueue a job that fails for good, of
// which the service makes a message for administrators: its own job.
func TestTheAuditLogHasJobs(t *testing.T) {
	t.Parallel()
	config := "activity: {enqueued: [notification.send], share: 0}\nschedule: {enabled: false}\n"
	s := startService(t, config, newDatabase(t, jobstest.SQLite, tables.Stock))
	admin := bearer(s.token("admin"))
	var made struct{ ID string }
	s.ask(201, "POST", "/api/v1/jobs",
		`{"type":"cmsjobs.probe","payload":{"fail":"no luck\nat line 1"},"max_attempts":1}`, admin, &made)
	type auditEntry struct {
		Actor, Action, Target, Detail string
		Status                        int
	}
	audited := func(action string) []auditEntry {
		var list struct{ Items []auditEntry }
		s.ask(200, "GET", "/api/v1/audit?action="+action, "", admin, &list)
		return list.Items
	}
	for deadline := time.Now().Add(2 * time.Minute); len(audited("job_failed")) == 0 ||
		len(audited("job_enqueued")) == 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the audit log: %+v %+v\n%s", audited("job_failed"), audited("job_enqueued"), s.log())
		}
	}
	if want := (auditEntry{"cmsjobs", "job_failed", made.ID, "cmsjobs.probe: no luck", 500}); !slices.Contains(
		audited("job_failed"), want) {
		t.Errorf("%+v lacks %+v", audited("job_failed"), want)
	}
	if got := audited("job_enqueued")[0]; got.Actor != "cmsjobs" || got.Detail != "notification.send" ||
		len(got.Target) != 36 || got.Status != 201 {
		t.Errorf("%+v", got)
	}
	if asked := audited("jobs.enqueue"); len(asked) != 1 || asked[0].Actor != "test" {
		t.Errorf("what the person asked for: %+v", asked)
	}
}
