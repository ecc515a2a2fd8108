package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestLaravelsSpellings gives Laravel's commands as its documentation and
// supervisor files do.
func TestLaravelsSpellings(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	quiet := []string{"CMSJOBS_NOTIFY_MAIL=false"}
	want(t, call(t, quiet, dsn, "enqueue", "cmsjobs.probe", "--queue", "default"), 0)
	want(t, call(t, quiet, dsn, "queue:monitor", "database:default,mail", "--max=0"), exitFault, "ALERT",
		"more than 0 jobs wait in default")
	want(t, call(t, quiet, dsn, "queue:monitor", "default"), 0, "OK")
	want(t, call(t, quiet, dsn, "queue:work", "database", "--sleep=3", "--tries=3", "--timeout=60", "--memory=256",
		"--max-time=3600", "--queue=default", "--stop-when-empty"), 0)
	want(t, call(t, quiet, dsn, "jobs", "list", "--status", "completed"), 0, "cmsjobs.probe")
	want(t, call(t, quiet, dsn, "queue:work", "redis", "--once"), exitUsage, `the connection is named "database"`)
	want(t, call(t, quiet, dsn, "enqueue", "cmsjobs.probe", "--queue", "bulk"), 0)
	want(t, call(t, quiet, dsn, "queue:clear", "database", "--queue=bulk", "--force"), 0, "Cleared 1 job from")
	want(t, call(t, quiet, dsn, "queue:clear", "--queue=bulk"), 0, "Cleared 0 jobs")
	dir := t.TempDir()
	file := filepath.Join(dir, "crontab")
	if err := os.WriteFile(file, []byte("*/5 * * * * /bin/echo it ran >/dev/null\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	imported := call(t, nil, "schedule", "import", file)
	want(t, imported, 0, "program: /bin/echo", "type: command.run")
	settings := filepath.Join(dir, "cmsjobs.yaml")
	if err := os.WriteFile(settings, []byte(imported.out), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, call(t, quiet, dsn, "--config", settings, "schedule", "list"), 0, "echo", "command.run")
	ran := answer[struct{ ID string }](t, call(t, quiet, dsn, "--config", settings, "--json", "schedule", "run", "echo"))
	want(t, call(t, quiet, dsn, "--config", settings, "work", "--stop-when-empty"), 0)
	want(t, call(t, quiet, dsn, "--config", settings, "jobs", "show", ran.ID), 0, "it ran", "completed")
	want(t, call(t, quiet, dsn, "enqueue", "command.run", `{"name":"echo"}`), exitUsage,
		"There is no type")
	want(t, call(t, quiet, dsn, "--set", "backup.dir="+t.TempDir(), "backup:run", "--only-db",
		"--disable-notifications"), 0)
}
