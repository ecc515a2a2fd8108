package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// phpUUID is the one of the payload "job", failedUUID that of "unique".
const (
	phpUUID    = "a2f44c39-f366-4a19-8247-f98486ee1446"
	failedUUID = "d1b93602-fc16-4001-96b5-163d59a0a723"
)

// oneBatch is a batch of which two of three jobs are done, and one failed.
type oneBatch struct{}

var halfDone = jobs.Batch{ID: "9a1c4f0e-0000-4000-8000-000000000001", Name: "Import", Total: 3, Pending: 1, Failed: 1,
	FailedJobs: []string{failedUUID}, CreatedAt: noon}

func (oneBatch) Batches(context.Context, jobs.Page) (jobs.List[jobs.Batch], error) {
	return jobs.List[jobs.Batch]{Items: []jobs.Batch{halfDone}, Total: -1}, nil
}

func (oneBatch) Batch(context.Context, string) (jobs.Batch, error) { return halfDone, nil }

// trace is an exception as failed_jobs has it.
const trace = `RuntimeException: no such customer in /srv/site/app/Jobs/SendInvoice.php:41
Stack trace:
#0 /srv/site/app/Services/Billing.php(17): App\Jobs\SendInvoice->customer()
#1 /srv/site/vendor/laravel/framework/src/Illuminate/Container/BoundMethod.php(36): App\Jobs\SendInvoice->handle()
#2 {main}`

// withPHP puts payloads of Laravel's (package phpjob has them) among the waiting jobs,
// and one among the failed.
func withPHP(t *testing.T, s *site) (numbers map[string]int64) {
	t.Helper()
	file, err := os.ReadFile("../php/phpjob/testdata/payloads.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	numbers = map[string]int64{}
	for _, name := range []string{"job", "encrypted", "chain", "batch", "mailable", "notification"} {
		r := s.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES "+
			"('default', ?, 0, 1, 1)", string(all[name]))
		if numbers[name], err = r.LastInsertId(); err != nil {
			t.Fatal(err)
		}
	}
	s.db.MustExec("INSERT INTO failed_jobs (id, uuid, connection, queue, payload, exception, failed_at) VALUES "+
		"(1000, '"+failedUUID+"', "+
		"'database', 'default', ?, ?, '2026-11-22 10:00:00')", string(all["unique"]), trace)
	return numbers
}

func TestPHPsJobsAreShownBesideOurs(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	numbers := withPHP(t, s)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	v := s.visitor(t).signIn("admin")
	v.get("/admin/jobs").sees("mail.send", "SendInvoice", `<span class="chip php">PHP</span>`, "post: &#34;Post:17&#34;",
		"Welcome")
	v.get(fmt.Sprint("/admin/jobs/", numbers["job"])).sees("Post:17", "currency", "protected", "Größe",
		"1,5,30 s", "2026-11-22 10:00:00 Asia/Ho_Chi_Minh")
	v.get(fmt.Sprint("/admin/jobs/", numbers["encrypted"])).sees("ShouldBeEncrypted")
	v.get(fmt.Sprint("/admin/jobs/", numbers["chain"])).sees("SendInvoice", "OnlyOnce")
	v.get("/admin/jobs/"+failedUUID).sees("no such customer", "Whole stack trace, 3 frames",
		`id="again"`)
	if message, rest, _ := strings.Cut(v.page, "Whole stack trace"); strings.Contains(message, "BoundMethod") ||
		!strings.Contains(message, "Billing.php(17)") || !strings.Contains(rest, "BoundMethod") {
		t.Error("the application's frames are not first")
	}
	v.press("again").sees("in its queue again")
	v.get("/admin/batches").sees("Import", "66 %").get("/admin/batches/"+halfDone.ID).sees("Import",
		"/admin/jobs/"+failedUUID)
}

// What is secret by its name, and what mails and notifications say, is hidden as it is
// of our jobs.
func TestSecretsOfPHPsJobsAreMasked(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	numbers := withPHP(t, s)
	for name, c := range map[string]struct {
		scope access.Scope
		job   string
		sees  []string
		not   []string
	}{
		"an operator, a password": {access.Operate, "job", []string{"Post:17", "•••", "EUR"},
			[]string{"hunter2"}},
		"an operator, an encrypted job": {access.Operate, "encrypted", []string{`"encrypted":true`},
			[]string{"hunter2", "eyJpdiI6"}},
		"a reader, a mailable": {access.Read, "mailable", []string{"Post:8", "•••"},
			[]string{"abc123", "reader@example.com"}},
		"an operator, a mailable":  {access.Operate, "mailable", []string{"reader@example.com"}, nil},
		"a reader, a notification": {access.Read, "notification", []string{"InvoicePaid"}, []string{"R-2026-1"}},
	} {
		path := fmt.Sprint("/api/v1/jobs/", numbers[c.job])
		a := s.admin("GET", path, nil)
		if c.scope == access.Read {
			a = s.do("GET", path, nil, bearer(s.tokens[access.Read]))
		}
		var view ops.JobView
		if err := json.Unmarshal(a.body, &view); err != nil || view.PHP == nil {
			t.Fatalf("%s: %v\n%s", name, err, a.body)
		}
		for _, text := range c.sees {
			if !strings.Contains(string(a.body), text) {
				t.Errorf("%s does not see %s:\n%s", name, text, a.body)
			}
		}
		for _, text := range c.not {
			if strings.Contains(string(a.body), text) {
				t.Errorf("%s sees %s", name, text)
			}
		}
	}
}

// queue:retry asks the class for its retryUntil() again; here the time runs again from
// now, as long as it was.
func TestARetriedJobOfPHPHasItsTimeAgain(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for i, name := range []string{"known", "unknown"} {
		s.db.MustExec("INSERT INTO failed_jobs (id, uuid, connection, queue, payload, exception, failed_at) VALUES "+
			"(?, ?, "+
			"'database', 'default', ?, 'x', '2026-11-22 10:00:00')", i+1, name,
			fmt.Sprintf(`{"uuid":%q,"displayName":"A",`+
				`"job":"x@call","attempts":3,"retryUntil":1700003600,"data":{"command":"O:1:\"A\":0:{}"}}`, name))
	}
	s.db.MustExec("INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, " +
		"duration_ms, wait_ms, created_at) VALUES (1, 'known', 'A', 'default', 1, 'failed', 'w', 'l', 1, 1, 1, " +
		"1700000000000)")
	before := time.Now().Unix()
	if n, err := s.history.Retry(t.Context(), jobs.Filter{}, 10); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	var payloads []string
	if err := s.db.Select(&payloads, "SELECT payload FROM jobs ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	var known, unknown struct {
		RetryUntil *int64
		Attempts   int
	}
	if json.Unmarshal([]byte(payloads[0]), &known) != nil || known.RetryUntil == nil ||
		*known.RetryUntil < before+3500 || *known.RetryUntil > before+4200 || known.Attempts != 0 {
		t.Error(payloads[0])
	}
	if json.Unmarshal([]byte(payloads[1]), &unknown) != nil || unknown.RetryUntil != nil || unknown.Attempts != 0 {
		t.Error(payloads[1])
	}
}

func TestSilencedClassesAreNotListed(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { c.Silenced = []string{`App\Jobs\Ping`} })
	ended := time.Now().Add(-time.Minute).UnixMilli() // figures are counted by the hour from the first run on
	for i, class := range []string{`App\Jobs\Ping`, `App\Jobs\Invoice`} {
		s.db.MustExec(
			"INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, "+
				"duration_ms, wait_ms, created_at, metadata) VALUES (?, ?, ?, 'default', 1, 'completed', 'w', 'l', "+
				"?, 1, 1, ?, ?)",
			i+1, class, class, ended+int64(i), ended, `{"origin":"php"}`)
	}
	for path, want := range map[string]bool{"/api/v1/jobs": false, "/api/v1/jobs?status=completed": false,
		`/api/v1/jobs?type=App%5CJobs%5CPing`: true} {
		body := string(s.admin("GET", path, nil).body)
		if strings.Contains(body, "Ping") != want || !want && !strings.Contains(body, `Invoice`) ||
			!strings.Contains(body, `"foreign":true`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	s.visitor(t).signIn("admin").get("/admin/jobs").sees("1 silenced class", "Invoice")
}
