package web_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/saved"
)

// TestAFilterIsWrittenAsALine: a line becomes conditions that can each be taken away,
// and the counts of the tabs follow.
func TestAFilterIsWrittenAsALine(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	mail := func(to, subject string) string {
		return s.enqueue(`{"type":"mail.send","payload":{"to":"` + to + `","subject":"` + subject + `"}}`)
	}
	done, failed := mail("a@b.example", "x"), mail("a@b.example", "fail")
	s.work()
	waiting := mail("c@d.example", "x")
	s.enqueue(`{"type":"cache.clear","payload":{}}`)
	v := s.visitor(t).signIn("operator")
	v.get("/admin/jobs").press(`id="q"`, "q", `type:mail.send "a@b.example"`).sees(done, failed,
		`<span>type:</span><span class="clip val">mail.send</span>`, `aria-label="Remove text:a@b.example"`)
	if strings.Contains(v.page, waiting) {
		t.Error("another text is listed")
	}
	for _, tab := range []string{`Completed <span
  class="n">1</span>`, `Failed <span
  class="n bad">1</span>`, `Waiting <span
  class="n">0</span>`, `All <span class="n">2</span>`} {
		v.sees(tab)
	}
	v.press(`id="q"`, "q", "status:failed").sees(failed)
	if strings.Contains(v.page, "j-"+done) {
		t.Error("the second line does not narrow the first")
	}
	without := regexp.MustCompile(`href="([^"]*)" aria-label="Remove status:failed"`).FindStringSubmatch(v.page)
	if without == nil {
		t.Fatal(v.page)
	}
	v.get(strings.ReplaceAll(without[1], "&amp;", "&")).sees(done, failed)
	v.get("/admin/jobs?q=typ%3Amail.send").sees2(`value="typ:mail.send"`)
	v.sees2("did you mean")
	v.get("/admin/jobs?q=worker%3Atest").sees(done, failed)
	if v.get("/admin/jobs?q=worker%3Anobody"); strings.Contains(v.page, done) {
		t.Error("a worker that ran nothing has jobs")
	}
	v.get("/admin/jobs").sees(`<option value="type:mail.send">`, `<option value="status:failed">`,
		`<option value="worker:host:1:a">`)
	s.db.MustExec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES "+
		"('pay', 'database', 'default', ?, 'no luck', '2026-01-02 03:04:05')", `{"uuid":"pay","displayName":"App\\Jobs\\Pay",`+
		`"job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"command":"O:12:\"App\\Jobs\\Pay\":0:{}"}}`)
	for _, list := range []string{"/admin/jobs", "/admin/failed"} { // a class of PHP's that the list shows
		v.get(list).sees(`<option value="type:App\Jobs\Pay">`, `<option value="App\Jobs\Pay">`)
	}
	v.get("/admin/failed?q=worker%3Anobody").sees("No failed jobs")
	v.get("/admin/failed?q=queue%3Acmsjobs").sees("550 no such user")
}

// A bulk action changes what is listed, also where a worker or a tag narrows it.
func TestABulkActionKeepsToTheWholeFilter(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	s.work()
	v := s.visitor(t).signIn("admin")
	for _, filter := range []string{"worker=nobody", "tag=none"} {
		v.get("/admin/jobs?status=failed&worker=test").sees(`<input type="hidden" name="worker" value="test">`)
		q, _ := url.ParseQuery(filter)
		q.Set("action", "delete")
		q.Set("sure", "yes")
		q.Set("_csrf", regexp.MustCompile(`name="_csrf" value="([^"]+)"`).FindStringSubmatch(v.page)[1])
		v.post("/admin/jobs/bulk", q).sees("No job matches the filter")
	}
}

func TestTheListOfRuns(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	done := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	failed := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	s.work()
	v := s.visitor(t).signIn("viewer").get("/admin/runs").sees(done, failed, `All <span class="n">2</span>`,
		`Failed <span class="n">1</span>`)
	if v.get("/admin/runs?outcome=failed").sees(failed); strings.Contains(v.page, "/admin/jobs/"+done) {
		t.Error("another outcome is listed")
	}
	v.press(`id="q"`, "q", "queue:elsewhere").sees("No runs here", `name="outcome" value="failed"`)
	v.get("/admin/runs?outcome=lucky").sees2("No outcome is named")
}

// TestSavedFilters: a person's own, refused without bound, back by one press after they
// were deleted.
func TestSavedFilters(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("viewer")
	v.get("/admin/jobs?q=type%3Amail.send+state%3Afailed").press(`id="save-filter"`, "name", `Lost "mails" <b>`).sees(
		"The filter Lost &#34;mails&#34; &lt;b&gt; is saved", "status=failed&amp;type=mail.send")
	other := s.visitor(t).signIn("admin").get("/admin/jobs")
	if strings.Contains(other.page, "Lost") {
		t.Error("another person sees the filter")
	}
	if v.get("/admin/runs"); strings.Contains(v.page, "Lost") {
		t.Error("another list has the filter")
	}
	v.get("/admin/jobs").press("/admin/filters/delete").sees("is deleted", `id="undo"`)
	page, at := v.page, v.at
	if v.get("/admin/jobs"); strings.Contains(v.page, "Lost") {
		t.Error("the filter is still there")
	}
	v.page, v.at = page, at
	v.press(`id="undo"`).sees("is saved", "Lost")
	for name, form := range map[string]url.Values{
		"empty":    {"list": {"jobs"}, "name": {"x"}, "query": {""}},
		"bad":      {"list": {"jobs"}, "name": {"x"}, "query": {"status=lucky"}},
		"nameless": {"list": {"jobs"}, "name": {"  "}, "query": {"type=a"}},
		"list":     {"list": {"tokens"}, "name": {"x"}, "query": {"type=a"}},
		"long":     {"list": {"jobs"}, "name": {"x"}, "query": {"type=" + strings.Repeat("x", 2000)}},
	} {
		form.Set("_csrf", regexp.MustCompile(`name="_csrf" value="([^"]+)"`).FindStringSubmatch(page)[1])
		if v.post("/admin/filters", form); v.status < 400 || v.status >= 500 {
			t.Errorf("%s: %d", name, v.status)
		}
	}
	store := saved.NewStore(s.db.DB, time.Now)
	for i := range saved.Most {
		_ = store.Save(t.Context(), "viewer", saved.Filter{List: "jobs", Name: fmt.Sprint("f", i), Query: "type=a"})
	}
	v.get("/admin/jobs?type=b").press(`id="save-filter"`, "name", "one more").sees2("Delete one first")
}

func TestColumnsAreTheBrowsersChoice(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	v := s.visitor(t).signIn("viewer").get("/admin/jobs").sees(`<th scope="col">Queue</th>`)
	if strings.Contains(v.page, `<th scope="col">Worker</th>`) {
		t.Error("the worker is shown without being asked for")
	}
	form := url.Values{"columns": {"worker", "enqueued", "evil"}, "back": {"/admin/jobs?status=queued"}}
	v.post("/admin/jobs/columns", form).sees(`<th scope="col">Worker</th>`, `<th scope="col">Enqueued</th>`)
	if strings.Contains(v.page, `<th scope="col">Queue</th>`) || v.at != "/admin/jobs?status=queued" {
		t.Errorf("%s", v.at)
	}
	v.post("/admin/jobs/columns", url.Values{}).sees("mail.send")
	if strings.Contains(v.page, `<th scope="col">Queue</th>`) {
		t.Error("no column at all cannot be chosen")
	}
}

// TestAFileHasWhatTheFilterShows: all of it, masked for its reader, and nothing that a
// spreadsheet takes for a formula.
func TestAFileHasWhatTheFilterShows(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	for i := range 620 {
		s.enqueue(fmt.Sprintf(`{"type":"mail.send","payload":{"to":"%d@b.example","password":"hunter2","body":"private"}}`, i))
	}
	evil := "=HYPERLINK(1)"
	s.db.MustExec("UPDATE jobs SET queue = ? WHERE id = (SELECT MIN(id) FROM jobs)", evil)
	s.enqueue(`{"type":"cache.clear","payload":{}}`)
	read := func(a answer) [][]string {
		t.Helper()
		if got := a.header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
			t.Errorf("the file is %s", got)
		}
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(a.body), "\uFEFF"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	viewer := basic("viewer", "right")
	for _, path := range []string{"/admin/jobs/export?q=type:mail.send", "/api/v1/jobs/export?type=mail.send"} {
		a := s.do("GET", path, nil, viewer).want(t, 200)
		rows := read(a)
		if len(rows) != 621 || rows[0][0] != "id" || rows[1][1] != "mail.send" {
			t.Errorf("%s: %d rows, %v", path, len(rows), rows[0])
		}
		if oldest := rows[len(rows)-1]; oldest[4] != "'"+evil {
			t.Errorf("%s: a formula stays one: %q", path, oldest[4])
		}
		for _, secret := range []string{"hunter2", "private"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s shows %s", path, secret)
			}
		}
	}
	if a := s.do("GET", "/admin/jobs/export?text=hunter2", nil, viewer); a.status != http.StatusForbidden {
		t.Errorf("a reader searches texts: %d", a.status)
	}
	if a := s.do("GET", "/api/v1/jobs/export", nil, bearer(s.tokens[access.Enqueue])); a.status != http.StatusForbidden {
		t.Errorf("without the scope to read: %d", a.status)
	}
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	for range 2 { // 500 at once; the formula's queue has no worker
		s.workOn("cmsjobs")
	}
	if rows := read(s.do("GET", "/api/v1/runs/export?outcome=failed", nil, viewer).want(t, 200)); len(rows) != 2 ||
		rows[1][4] != "failed" {
		t.Errorf("runs: %v", rows)
	}
	if rows := read(s.do("GET", "/admin/jobs/export?status=failed", nil, viewer).want(t, 200)); len(rows) != 2 {
		t.Errorf("failed jobs: %v", rows)
	}
}
