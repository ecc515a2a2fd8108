package cmsjobs_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// need is a right of docs/operating.md and a job that does not go without it.
type need struct {
	right, table     string
	jobType, payload string
	before           string // statements that leave the job something to do
}

var needs = []need{
	{"INSERT", "cache", "sitemap.generate", `{"force":true}`, ""}, // the map lies in the cache here
	{"DELETE", "cache", "cache.clearExpired", "", "DELETE FROM cms.cache; INSERT INTO cms.cache (`key`, value, " +
		"expiration) VALUES ('old', 'x', 1)"},
	{"DELETE", "cache_locks", "cache.clearExpired", "", "DELETE FROM cms.cache_locks; INSERT INTO cms.cache_locks " +
		"(`key`, owner, expiration) VALUES ('old', 'x', 1)"},
	{"DELETE", "audit_histories", "logs.cleanup", "", "INSERT INTO cms.audit_histories (user_id, module, action, " +
		"reference_id, reference_name, type, created_at) VALUES (1, 'm', 'a', 1, 'n', 'info', '2020-01-01')"},
	// Options as they are would not be written again.
	{"UPDATE (options, updated_at)", "media_files", "media.processImage", `{"mediaFileId":1,"force":true}`,
		"UPDATE cms.media_files SET options = '[]'"},
	{"UPDATE (status, updated_at)", "posts", "content.publish", `{"model":"posts","postId":1}`,
		"UPDATE cms.posts SET status = 'draft' WHERE id = 1"},
	{"UPDATE (status, updated_at)", "pages", "content.publish", `{"model":"pages","postId":1}`,
		"UPDATE cms.pages SET status = 'draft' WHERE id = 1"},
	{"INSERT, DELETE", "admin_notifications", "notification.send", `{"title":"Hello","message":"Hi","topic":"TOPIC"}`,
		""},
	{"INSERT, UPDATE, DELETE", "jobs", "mail.send", `{"to":"zoe@example.com","subject":"Hello","body":"Hi"}`, ""},
}

// restricted is a sample CMS on a server where the accounts of
// docs/operating.md have the rights that stand there.
type restricted struct {
	t    *testing.T
	db   *sql.DB // as root
	port int
	dir  string
}

// The grants of docs/operating.md are enough to work, for the account that
// works they allow no table to be made, and none of them is one too many.
func TestLeastRights(t *testing.T) { jobstest.EachMySQL(t, testLeastRights) }

func testLeastRights(t *testing.T, engine jobstest.Engine) {
	r := newRestricted(t, engine)
	grants := r.grant()
	for _, n := range needs {
		if !strings.Contains(grants, fmt.Sprintf("%s ON cms.%s TO", n.right, n.table)) &&
			!strings.Contains(grants, fmt.Sprintf("ON cms.%s TO", n.table)) {
			t.Errorf("the manual does not grant %s on %s", n.right, n.table)
		}
	}
	t.Run("enough", r.enough)
	t.Run("no table", func(t *testing.T) {
		if out, err := r.cmsjobs("migrate", "down", "--yes"); err == nil {
			t.Errorf("the account that works could remove tables:\n%s", out)
		}
	})
	for _, n := range needs {
		t.Run("not one too many: "+n.right+" on "+n.table, func(t *testing.T) { r.without(t, n) })
	}
	t.Run("nothing untried", func(t *testing.T) { everyGrantIsNeeded(t, grants) })
}

func newRestricted(t *testing.T, engine jobstest.Engine) *restricted {
	t.Helper()
	server := jobstest.Own(t, engine)
	db := server.RootMySQL(t)
	r := &restricted{t: t, db: db, port: server.Port, dir: t.TempDir() + "/site"}
	if out, err := exec.Command(program(t), "demo", "--seed-only", "--dir", r.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.do("CREATE DATABASE cms; USE cms;\n" + read(t, "deploy/compose/cms.sql"))
	return r
}

func (r *restricted) do(statements string) {
	r.t.Helper()
	if _, err := r.db.Exec(statements); err != nil {
		r.t.Fatalf("%v in %.300s", err, statements)
	}
}

// grant does what the manual says and returns its statements.
func (r *restricted) grant() string {
	r.t.Helper()
	var blocks []string
	for _, block := range fence.FindAllStringSubmatch(read(r.t, "docs/operating.md"), -1) {
		if block[1] == "sql" {
			blocks = append(blocks, block[2])
		}
	}
	r.do(blocks[0])
	if out, err := r.as("cmsjobs_owner", "change-me", "migrate", "up"); err != nil {
		r.t.Fatalf("migrate up: %v\n%s", err, out)
	}
	rows, err := r.db.Query(blocks[1])
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var ours []string
	for rows.Next() {
		var statement string
		if err := rows.Scan(&statement); err != nil {
			r.t.Fatal(err)
		}
		ours = append(ours, statement)
	}
	if err := rows.Err(); err != nil || len(ours) < 10 {
		r.t.Fatalf("%d grants: %v", len(ours), err)
	}
	r.do(strings.Join(ours, "\n"))
	return blocks[0]
}

// cmsjobs runs the program as the account that works.
func (r *restricted) cmsjobs(words ...string) (string, error) {
	return r.as("cmsjobs", "change-me-too", words...)
}

func (r *restricted) as(user, password string, words ...string) (string, error) {
	c := exec.Command(program(r.t), words...)
	c.Env = append(os.Environ(), fmt.Sprintf("CMSJOBS_DATABASE_DSN=mysql://%s:%s@127.0.0.1:%d/cms", user, password,
		r.port), "CMSJOBS_DATABASE_MIGRATE=false",
		"CMSJOBS_CMS_DIR="+r.dir, "CMSJOBS_MAIL_DRIVER=log", "CMSJOBS_CACHE_DRIVER=database",
		"CMSJOBS_SITEMAP_TARGET=cache")
	out, err := c.CombinedOutput()
	return string(out), err
}

// enqueue puts in a job that is tried once; topic sets apart what would be
// taken for the same.
func (r *restricted) enqueue(jobType, payload, topic string) (string, error) {
	return r.cmsjobs("enqueue", jobType, strings.ReplaceAll(cmp.Or(payload, "{}"), "TOPIC", topic), "--max-attempts",
		"1")
}

func (r *restricted) count(query string) (n int) {
	r.t.Helper()
	if err := r.db.QueryRow(query).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// enough does all jobs with all the rights.
func (r *restricted) enough(t *testing.T) {
	types := needs
	for _, jobType := range []string{"queue.clean", "analytics.process"} {
		types = append(types, need{jobType: jobType})
	}
	for _, n := range types {
		if n.before != "" {
			r.do(n.before)
		}
		if out, err := r.enqueue(n.jobType, n.payload, "first"); err != nil {
			t.Errorf("enqueue %s: %v\n%s", n.jobType, err, out)
		}
	}
	out, err := r.cmsjobs("work", "--stop-when-empty")
	if err != nil || strings.Contains(out, "denied") {
		t.Errorf("work: %v\n%s", err, out)
	}
	if dead := r.count("SELECT COUNT(*) FROM cms.failed_jobs"); dead > 0 {
		t.Errorf("%d jobs failed\n%s", dead, out)
	}
	for _, n := range types {
		if r.count("SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'completed' AND type = '"+n.jobType+
			"'") == 0 {
			t.Errorf("%s was not done\n%s", n.jobType, out)
		}
	}
}

// without takes one right away: its job says what was denied.
func (r *restricted) without(t *testing.T, n need) {
	r.do("DELETE FROM cms.failed_jobs")
	if n.before != "" {
		r.do(n.before)
	}
	r.do(fmt.Sprintf("REVOKE %s ON cms.%s FROM 'cmsjobs'@'%%'", n.right, n.table))
	defer r.do(fmt.Sprintf("GRANT %s ON cms.%s TO 'cmsjobs'@'%%'", n.right, n.table))
	out, err := r.enqueue(n.jobType, n.payload, n.table)
	if err == nil {
		worked, _ := r.cmsjobs("work", "--stop-when-empty") // its exit code is not the question
		out += worked
	}
	if r.count("SELECT COUNT(*) FROM cms.failed_jobs WHERE exception LIKE '%denied%'") == 0 &&
		!strings.Contains(out, "denied") {
		t.Errorf("%s works without %s on %s: the manual grants too much, or this test too little\n%s", n.jobType,
			n.right, n.table, out)
	}
}

// everyGrantIsNeeded wants a need for each right that the manual gives on a
// table of the CMS. Moving a job there writes failed_jobs: without is about it.
func everyGrantIsNeeded(t *testing.T, grants string) {
	tried := map[string]string{"failed_jobs": "INSERT, UPDATE, DELETE"}
	for _, n := range needs {
		tried[n.table] += ", " + n.right
	}
	granted := 0
	for line := range strings.Lines(grants) {
		rights, rest, is := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON cms.")
		table, _, works := strings.Cut(rest, " TO 'cmsjobs'@")
		if !is || !works || table == "*" {
			continue
		}
		granted++
		for right := range strings.SplitSeq(rights, ", ") {
			if !strings.Contains(tried[table], right) {
				t.Errorf("no job of this test needs %s on %s", right, table)
			}
		}
	}
	if granted < 8 {
		t.Errorf("only %d grants were found", granted)
	}
}
