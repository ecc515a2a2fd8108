package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestThePHPPackage runs the package in Debian's Laravel on MariaDB and reads
// its rows as the service does, on both layouts.
func TestThePHPPackage(t *testing.T) { jobstest.EachMySQL(t, testThePHPPackage) }

func testThePHPPackage(t *testing.T, engine jobstest.Engine) {
	php, err := exec.LookPath("php")
	if err != nil {
		jobstest.Skip(t, "no php: %v", err)
	}
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "apt-get install php-laravel-framework php-mysql: %v", err)
	}
	for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
		t.Run(string(layout), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
				t.Fatal(err)
			}
			var database string
			if err := db.Get(&database, "SELECT DATABASE()"); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), php, filepath.Join("..", "..", "sdk", "php", "tests", "run.php"))
			c.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", jobstest.Shared(t, engine).Port), "DB_DATABASE="+
				database)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var made struct {
				Facade, Helper, Status string
				Before, Exit           int
			}
			if err := json.Unmarshal(out, &made); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if made.Exit != 0 || !strings.Contains(made.Status, "waiting or running: 7") {
				t.Errorf("cmsjobs:status: %d %q", made.Exit, made.Status)
			}
			if made.Before != 2 {
				t.Errorf("%d jobs wait after drafts and administrators changed, want the 2 of before", made.Before)
			}
			checkPHPRows(t, db, made.Facade, made.Helper)
		})
	}
}

func checkPHPRows(t *testing.T, db *jobstest.Database, facade, helper string) {
	t.Helper()
	registry := jobs.NewRegistry()
	for _, name := range []string{"mail.send", "cache.clear", "sitemap.generate", "media.processImage"} {
		jobs.Handle(registry, jobs.Kind[map[string]any]{Name: name, Policy: jobs.Policy{MaxAttempts: 6}}, nil)
	}
	found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	store, err := queue.New(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), jobs.ClaimRequest{Worker: "t", Queues: []string{"cmsjobs"}, Limit: 50,
		Lease: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	jobTypes := map[string]string{}
	for _, c := range claimed {
		jobTypes[c.Job.Type] += string(c.Job.Data)
		if c.Fault != nil {
			t.Errorf("%s: %v", c.Job.Type, c.Fault)
		}
		if c.Job.Type == "mail.send" && (c.Job.UUID != facade || c.Job.MaxAttempts != 5 ||
			!strings.Contains(string(c.Job.Metadata), "7")) {
			t.Errorf("%+v", c.Job)
		}
	}
	// Once the settings' cache by a request, twice all of it: by a request and a command.
	const cleared = `{"tags":["settings"],"clearAll":false}{"tags":[],"clearAll":true}{"tags":[],"clearAll":true}`
	if len(claimed) != 5 || !strings.Contains(jobTypes["mail.send"], "Grüße 🎉") ||
		!strings.Contains(jobTypes["media.processImage"], `"news/a.jpg"`) || jobTypes["cache.clear"] != cleared {
		t.Errorf("due now: %v", jobTypes)
	}
	waiting, err := history.New(found).Jobs(t.Context(), jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued}},
		jobs.Page{Limit: 50})
	if err != nil || len(waiting.Items) != 2 { // one sitemap for three changes, one hour's cache.clear
		t.Errorf("%d wait (%v)", len(waiting.Items), err)
	}
	for _, r := range waiting.Items {
		if r.UUID == helper && r.RunAt.Before(time.Now().Add(50*time.Minute)) {
			t.Errorf("the helper's delay is lost: %v", r.RunAt)
		}
	}
}
