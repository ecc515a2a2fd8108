package cli

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestTheOverviewAsLines shows figures, newest jobs and one job where there is no terminal.
func TestTheOverviewAsLines(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	quiet := []string{"CMSJOBS_NOTIFY_MAIL=false", "CMSJOBS_NOTIFY_CMS=false", "CMSJOBS_CONDITIONS_NOTIFY=false"}
	type enqueued struct{ ID string }
	good := answer[enqueued](t, call(t, quiet, dsn, "--json", "enqueue", "cmsjobs.probe"))
	bad := answer[enqueued](t, call(t, quiet, dsn, "--json", "enqueue", "cmsjobs.probe", `{"fail":"no luck"}`,
		"--max-attempts", "1"))
	want(t, call(t, quiet, dsn, "top", "--once"), 0, "Waiting 2", "Failed 0")
	want(t, call(t, quiet, dsn, "work", "--stop-when-empty"), 0)
	want(t, call(t, quiet, dsn, "top", "--once"), 0, "Completed 1", "Failed 1", "50.0 % succeed")
	want(t, call(t, quiet, dsn, "--json", "top", "--once"), 0, `"stats":{"waiting":`, `"completed":1`)
	want(t, call(t, quiet, dsn, "jobs", "watch", good.ID), 0, "cmsjobs.probe  completed")
	want(t, call(t, quiet, dsn, "jobs", "watch", bad.ID), exitFault, "no luck")
	want(t, call(t, quiet, dsn, "jobs", "log", good.ID, "--follow"), 0)
	want(t, call(t, quiet, dsn, "jobs", "watch", "4711"), exitNotFound)
	want(t, call(t, quiet, dsn, "top", "--interval", "1ms"), exitUsage, "at least")
	want(t, call(t, quiet, dsn, "top", "--url", "ftp://x"), exitUsage, "must be like https://")
	want(t, call(t, quiet, dsn, "top", "--url", "https://shop.example.com"), exitUsage, "CMSJOBS_TOKEN")
}

// TestTheOverviewOfAService asks a running service by its address, with a token that may read.
func TestTheOverviewOfAService(t *testing.T) {
	t.Parallel()
	s := startService(t, "schedule: {enabled: false}\n", newDatabase(t, jobstest.SQLite, tables.Stock))
	env := []string{"CMSJOBS_TOKEN=" + s.token("read")}
	want(t, call(t, env, "top", "--once", "--url", s.url), 0, "Waiting ", "Last hour")
	want(t, call(t, env, "jobs", "watch", "4711", "--url", s.url), exitNotFound)
	want(t, call(t, []string{"CMSJOBS_TOKEN=wrong"}, "top", "--once", "--url", s.url), exitFault, "answers 401")
}
