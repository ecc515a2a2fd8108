package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// TestAMaskIsNotTurnedIntoItsValue edits a job whose payload holds secrets: who
// is no administrator cannot send them elsewhere by changing what is beside.
func TestAMaskIsNotTurnedIntoItsValue(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const secret = "S3CRETorig"
	id := s.enqueue(
		fmt.Sprintf(
			`{"type":"cache.clear","delay":3600,"payload":{"url":"https://u:%[1]s@old.example/?token=%[1]s","data":{"password":%[1]q,"n":1},"list":[{"apiKey":%[1]q}]}}`, secret))
	masked := `{"url":"https://•••@old.example/?token=•••","data":{"password":"•••","n":1},"list":[{"apiKey":"•••"}]}`
	stored := func() (n int) {
		if err := s.db.Get(&n, "SELECT COUNT(*) FROM jobs WHERE payload LIKE '%"+secret+"%'"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	edit := func(who, payload string) answer {
		form := url.Values{"payload": {payload}}.Encode()
		return s.submit("/admin/jobs/"+id+"/edit", form, basic(who, "right"))
	}
	for _, payload := range []string{
		strings.Replace(masked, "old.example", "mine.example", 1), strings.Replace(masked, `"n":1`, `"n":2`, 1),
		`{"url":"https://mine.example/","data":{"password":"•••"}}`,
		`{"password":"•••"}`, `{"data":{"password":"•••"}}`, strings.Replace(masked, `"password":"•••"`,
			`"password":"\u2022\u2022\u2022","x":1`, 1), `{"•••":1}`,
		`{"url":"https://mine.example/?token=•••"}`, `{"list":[{"apiKey":"•••"},1]}`,
	} {
		if a := edit("operator", payload); a.status != http.StatusUnprocessableEntity || stored() != 1 {
			t.Errorf("an operator ran %s: %d, %d jobs hold the secret", payload, a.status, stored())
		}
	}
	edit("operator", `{"url":"https://mine.example/","data":{"password":"my own"}}`).want(t, http.StatusSeeOther)
	if stored() != 1 {
		t.Error("a payload without a mask got the secret")
	}
	edit("operator", masked).want(t, http.StatusSeeOther)
	if stored() != 2 {
		t.Error("a payload that nobody changed lost its secrets")
	}
	edit("admin", strings.Replace(masked, `"n":1`, `"n":2`, 1)).want(t, http.StatusSeeOther)
	if stored() != 3 {
		t.Error("an administrator's payload lost its secrets")
	}
	edit("admin", `{"url":"https://mine.example/?token=•••"}`).want(t, http.StatusUnprocessableEntity) // another place
	edit("admin", `{"other":"•••"}`).want(t, http.StatusUnprocessableEntity)
	if stored() != 3 {
		t.Errorf("%d jobs hold the secret", stored())
	}
}

// TestAChangedScheduleKeepsNoMask sends a schedule's payload back as it was
// shown, changed and unchanged.
func TestAChangedScheduleKeepsNoMask(t *testing.T) {
	s := newEffectSite(t, func(*config) {})
	patch := func(who, payload string) int {
		return s.do("PATCH", "/api/v1/schedules/cache.clear", `{"payload":`+payload+`}`, basic(who, "right")).status
	}
	if status := patch("operator", `{"to":"old","password":"S3CRETorig"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	if status := patch("operator", `{"to":"mine","password":"•••"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("an operator changed what is beside a mask: %d", status)
	}
	// in this order
	for _, c := range [][2]string{{"operator", `{"to":"old","password":"•••"}`},
		{"admin", `{"to":"new","password":"•••"}`}} {
		who, payload := c[0], c[1]
		if status := patch(who, payload); status != http.StatusOK {
			t.Errorf("%s: %d", who, status)
		}
		var data string
		if err := s.db.Get(&data, "SELECT data FROM cmsjobs_schedules WHERE name = 'cache.clear'"); err != nil ||
			!strings.Contains(data, "S3CRETorig") {
			t.Errorf("%s left %s, %v", who, data, err)
		}
	}
}

// TestLiveEventsShowNoTextsOfMails follows a mail while it runs.
func TestLiveEventsShowNoTextsOfMails(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { c.MaskPaths = nil })
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"hello","body":"S3CRETreset"}}`)
	if list, err := s.store.Claim(t.Context(), jobs.ClaimRequest{Worker: "test", Queues: []string{"cmsjobs"}, Limit: 1,
		Lease: time.Minute}); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for scope, sees := range map[string]bool{"read": false, "admin": true} {
		var job ops.JobView
		s.do("GET", "/api/v1/jobs/"+id, nil, basic(map[string]string{"read": "viewer", "admin": "admin"}[scope],
			"right")).want(t, 200).into(t, &job)
		if strings.Contains(string(job.Payload), "S3CRET") != sees || !strings.Contains(string(job.Payload), "hello") {
			t.Errorf("%s sees %s", scope, job.Payload)
		}
	}
	for _, path := range []string{"/api/v1/jobs?text=S3CRET", "/api/v1/failed?text=S3CRET", "/api/v1/runs?text=x",
		"/api/v1/failed/groups?text=x", "/admin/failed/export?text=x",
		"/admin/jobs/export?text=x", "/api/v1/jobs/export?text=x", "/api/v1/runs/export?text=x"} {
		s.do("GET", path, nil, basic("viewer", "right")).want(t, http.StatusForbidden)
		s.do("GET", path, nil, basic("operator", "right")).want(t, http.StatusOK)
	}
	for _, path := range []string{"/admin/jobs?text=S3CRET", "/admin/jobs?q=S3CRET", "/admin/failed?q=S3CRET",
		"/admin/runs?q=S3CRET"} {
		page := string(s.do("GET", path, nil, basic("viewer", "right")).want(t, http.StatusOK).body)
		if strings.Contains(page, id) || !strings.Contains(page, "needs the scope") {
			t.Errorf("%s: a viewer searches texts that are hidden", path)
		}
	}
	served, stop := serve(t, s)
	defer stop()
	r, err := http.NewRequestWithContext(t.Context(), "GET", served+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer(s.tokens["admin"])(r) // all hear the same: also those who may see more
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text := lines.Text(); strings.Contains(text, id) {
			if strings.Contains(text, "S3CRET") || !strings.Contains(text, "hello") {
				t.Errorf("the event says %s", text)
			}
			return
		}
	}
	t.Error("no event tells of the job")
}

// TestARowOfSQLIsMaskedWhateverItsSpelling writes rows past the API: the handler
// reads a field in any capitals, so a reader sees it in none.
func TestARowOfSQLIsMaskedWhateverItsSpelling(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { c.MaskPaths = nil })
	for _, field := range []string{"body", "Body", "BODY", "Html"} {
		s.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) "+
			"VALUES ('rows', ?, 0, 1, 1)",
			fmt.Sprintf(`{"type":"mail.send","data":{"to":"a@b.example","subject":"hello","%s":"S3CRETreset"}}`, field))
	}
	var list struct{ Items []struct{ ID string } }
	s.admin("GET", "/api/v1/jobs?queue=rows", nil).want(t, 200).into(t, &list)
	if len(list.Items) != 4 {
		t.Fatalf("%d of 4 rows are jobs", len(list.Items))
	}
	for name, sees := range map[string]bool{"viewer": false, "admin": true} {
		for _, item := range list.Items {
			for _, path := range []string{"/api/v1/jobs/", "/admin/jobs/"} {
				shown := string(s.do("GET", path+item.ID, nil, basic(name, "right")).want(t, 200).body)
				if strings.Contains(shown, "S3CRET") != sees || !strings.Contains(shown, "hello") {
					t.Errorf("a row's secret is shown to %s at %s: %t", name, path, !sees)
				}
			}
		}
	}
}
