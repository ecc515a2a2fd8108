package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Names that nothing has end with 4, wrong values with 2, and nothing is done.
func TestMistypedNamesAreSeen(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"backup restore nosuch --database --dry-run", exitNotFound, "no such backup"},
		{"backup show nosuch", exitNotFound, "no such backup"},
		{"mail preview nosuch", exitNotFound, "no such mail template"},
		{"mail resend nosuch", exitNotFound, "no mail has the job id"},
		{"failed retry --cause nope", exitNotFound, "no job to retry fits"},
		{"failed delete --type nope --yes", exitNotFound, "no job to delete fits"},
		{"pause nosuchqueue", exitNotFound, "known are"},
		{"pause höchste --force", exitUsage, "letters, digits"},
		{"enqueue cache.clear --queue höchste", exitUsage, "letters, digits"},
		{"work --once --queue höchste", exitUsage, "no name of a queue"},
		{"jobs list --limit -5", exitUsage, "from 1"},
		{"workers scale", exitUsage, "how many slots"},
		{"workers scale many", exitUsage, "from 1 to"},
		{"workers scale 2 --worker nosuch", exitNotFound, "not found"},
		{"failed list --limit 0", exitUsage, "from 1"},
		{"mail log --limit many", exitUsage, "from 1"},
		{"webhook deliveries --limit -1", exitUsage, "from 1"},
		{"schedule history --limit -1", exitUsage, "from 1"},
		{"config show --set backup.to=[local]", 0, "backup.to"},
		{"config show --set conditions.off=[no_backup,verification_old]", 0, "no_backup"},
		{"config show --set backup.to=[ftp]", exitUsage, `"ftp" is none of`},
		{"jobs stats", 0, "queued 0"},
	} {
		want(t, call(t, nil, append([]string{dsn, "--set", "backup.dir=" + t.TempDir()},
			strings.Fields(c.args)...)...), c.code, c.says)
	}
	if r := call(t, nil, dsn, "--json", "jobs", "stats"); strings.Contains(r.out, "nosuchqueue") {
		t.Error("a queue that nothing knows was paused")
	}
	want(t, call(t, nil, dsn, "pause", "nosuchqueue", "--force"), 0, "Paused")
	want(t, call(t, nil, dsn, "continue", "nosuchqueue"), 0)
	want(t, call(t, nil, dsn, "pause", "cmsjobs"), 0, "Paused")

	db := openSQLite(t, dsn)
	for i := range jobs.MaxQueues + 3 {
		db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES (?, '{}', 0, 1, 1)",
			fmt.Sprintf("tenant-%d", i))
	}
	want(t, call(t, nil, dsn, "enqueue", "cache.clear", "--queue", "one-more"), exitUsage, "There are 200 queues")
	want(t, call(t, nil, dsn, "enqueue", "cache.clear", "--queue", "tenant-1"), 0, "Enqueued")
	want(t, call(t, nil, dsn, "pause", "one-more", "--force"), exitUsage, "There are 200 queues")
	want(t, call(t, nil, dsn, "queues"), 0, "more queues")
}

// Rows of jobs and of failed_jobs are numbered each by itself: a number that
// names two jobs chooses none of them where either may be meant.
func TestANumberThatTwoJobsHaveIsRefused(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	call(t, nil, dsn, "migrate", "up")
	db := openSQLite(t, dsn)
	insertRow(t, db, "jobs", `{"type":"cmsjobs.probe","uuid":"11111111-1111-4111-8111-111111111111","data":{}}`)
	insertRow(t, db, "failed_jobs", `{"type":"cmsjobs.probe","uuid":"22222222-2222-4222-8222-222222222222","data":{}}`)
	want(t, call(t, nil, dsn, "jobs", "show", "1"), exitFault, "11111111-1111-4111-8111-111111111111 is queued",
		"22222222-2222-4222-8222-222222222222 is failed", "Say the UUID")
	want(t, call(t, nil, dsn, "failed", "show", "1"), 0, "22222222-2222-4222-8222-222222222222")
	list := call(t, nil, dsn, "jobs", "list")
	want(t, list, 0, "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222", "–")
	if strings.Contains(list.out, "0/3") && strings.Contains(list.out, "failed  0/") {
		t.Errorf("a failed job has no attempts:\n%s", list.out)
	}
	want(t, call(t, nil, dsn, "failed", "retry", "1"), 0, "retry: 1 job")
	want(t, call(t, nil, dsn, "jobs", "show", "22222222-2222-4222-8222-222222222222"), 0, "queued")
}

func insertRow(t *testing.T, db *sqlx.DB, table, payload string) {
	t.Helper()
	statement, args := "INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', ?, "+
		"0, ?, ?)", []any{payload, time.Now().Unix(), time.Now().Unix()}
	if table == "failed_jobs" {
		statement, args = "INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES "+
			"('22222222-2222-4222-8222-222222222222', 'database', 'default', ?, 'no', ?)",
			[]any{payload, time.Now().UTC().Format(time.DateTime)}
	}
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// A row that is no JSON is explained as such, and a job that is retried with
// its error.
func TestExplainNamesTheCause(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	call(t, nil, dsn, "migrate", "up")
	insertRow(t, openSQLite(t, dsn), "jobs", "no JSON at all")
	want(t, call(t, nil, dsn, "jobs", "explain", "1"), 0, "not JSON")
	quiet := []string{"CMSJOBS_NOTIFY_MAIL=false", "CMSJOBS_NOTIFY_CMS=false"}
	id := answer[struct{ ID string }](t, call(t, quiet, dsn, "--json", "enqueue", "cmsjobs.probe",
		`{"fail":"the bucket is gone"}`)).ID
	want(t, call(t, quiet, dsn, "work", "--stop-when-empty"), 0)
	openSQLite(t, dsn).MustExec("UPDATE jobs SET available_at = available_at + 600")
	r := call(t, quiet, dsn, "--json", "jobs", "explain", id)
	want(t, r, 0, "the bucket is gone")
	if !json.Valid([]byte(r.out)) {
		t.Error(r.out)
	}
}

// A priority is kept, or refused: never lost silently.
func TestAPriorityIsKeptOrRefused(t *testing.T) {
	t.Parallel()
	stock := newDatabase(t, jobstest.SQLite, tables.Stock)
	want(t, call(t, nil, stock, "enqueue", "cache.clear", "--priority", "5"), exitUsage, "no column")
	want(t, call(t, nil, stock, "jobs", "list"), 0, "No jobs")
	extended := newDatabase(t, jobstest.MySQL, tables.Extended)
	made := answer[struct{ ID string }](t, call(t, nil, extended, "--json", "enqueue", "cache.clear", "--priority", "5"))
	job := answer[struct{ Priority int }](t, call(t, nil, extended, "--json", "jobs", "show", made.ID))
	if job.Priority != 5 {
		t.Errorf("its priority is %d", job.Priority)
	}
}
