package web_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// visitor is a browser without JavaScript: it keeps cookies, follows
// redirections, and sends forms as they stand on a page.
type visitor struct {
	t      testing.TB
	base   string
	client *http.Client
	page   string // the last one's HTML
	at     string // and its address
	status int
	hasty  bool // takes a page whose figures are being counted
}

func (s *site) visitor(t testing.TB) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, base: s.http.URL, client: &http.Client{Jar: jar}}
}

func (v *visitor) send(r *http.Request) *visitor {
	v.t.Helper()
	response, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.page, v.at, v.status = string(text), response.Request.URL.RequestURI(), response.StatusCode
	if strings.Contains(v.page, "⟨") {
		v.t.Errorf("%s shows a key without a text: %s", v.at, v.page[strings.Index(v.page, "⟨"):][:60])
	}
	return v
}

// get loads a page, and again as long as figures of it are being counted.
func (v *visitor) get(path string) *visitor {
	v.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r, err := http.NewRequestWithContext(v.t.Context(), "GET", v.base+path, nil)
		if err != nil {
			v.t.Fatal(err)
		}
		if v.send(r); v.hasty || !counting(v.page) {
			return v
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("%s is never counted", path)
		}
	}
}

// counting says whether a page asks again for figures.
func counting(page string) bool { return strings.Contains(page, `hx-trigger="load delay:600ms"`) }

func (v *visitor) post(path string, form url.Values) *visitor {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "POST", v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.send(r)
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	inputTag  = regexp.MustCompile(`<(?:input|textarea|button)[^>]*>`)
	attribute = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
)

func attributes(tag string) map[string]string {
	all := map[string]string{}
	for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
		all[m[1]] = html.UnescapeString(m[2])
	}
	return all
}

// press sends the form that holds a button, found by a piece of its HTML, with
// its hidden fields; fill gives the others.
func (v *visitor) press(button string, fill ...string) *visitor {
	v.t.Helper()
	for _, form := range formTag.FindAllString(v.page, -1) {
		if !strings.Contains(form, button) {
			continue
		}
		values := url.Values{}
		for _, tag := range inputTag.FindAllString(form, -1) {
			a := attributes(tag)
			isButton := strings.HasPrefix(tag, "<button")
			if a["name"] != "" && (!isButton || strings.Contains(tag, button)) {
				values.Add(a["name"], a["value"])
			}
		}
		for i := 0; i+1 < len(fill); i += 2 {
			values.Set(fill[i], fill[i+1])
		}
		head := attributes(form[:strings.Index(form, ">")])
		if head["method"] == "get" {
			return v.get(head["action"] + "?" + values.Encode())
		}
		return v.post(head["action"], values)
	}
	v.t.Fatalf("%s has no form with %q:\n%s", v.at, button, v.page)
	return v
}

func (v *visitor) sees(texts ...string) *visitor {
	v.t.Helper()
	if v.status >= 400 {
		v.t.Fatalf("%s: %d\n%s", v.at, v.status, v.page)
	}
	for _, text := range texts {
		if !strings.Contains(v.page, text) {
			v.t.Errorf("%s does not show %q:\n%s", v.at, text, v.page)
		}
	}
	return v
}

func (v *visitor) signIn(role string) *visitor {
	v.t.Helper()
	return v.get("/admin/sign-in").press("password", "name", role, "password", "right")
}

func TestAPersonSignsInWhereHeWantedToGo(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	v := s.visitor(t)
	if v.get("/admin/jobs?status=failed"); v.status != http.StatusUnauthorized ||
		!strings.Contains(v.page, `name="password"`) {
		t.Fatalf("%d %s", v.status, v.page)
	}
	if v.press("password", "name", "viewer", "password", "wrong"); v.status != http.StatusUnauthorized {
		t.Fatalf("%d", v.status)
	}
	v.sees2(`role="alert"`)
	v.press("password", "name", "viewer", "password", "right").sees("viewer")
	if v.at != "/admin/jobs?status=failed" {
		t.Errorf("came to %s", v.at)
	}
	if strings.Contains(v.page, "Enqueue a job") {
		t.Error("a viewer is offered to enqueue")
	}
	v.press("/admin/sign-out")
	if v.get("/admin"); v.status != http.StatusUnauthorized {
		t.Errorf("signed out, and sees %d", v.status)
	}
	if v.get("/"); v.at != "/admin" {
		t.Errorf("/ leads to %s", v.at)
	}
	v.post("/admin/sign-in", url.Values{"name": {"admin"}, "password": {"right"},
		"next": {"https://evil.example/admin"}})
	if v.at != "/admin" {
		t.Errorf("led away to %s", v.at)
	}
}

// sees2 is sees for pages of refusal.
func (v *visitor) sees2(text string) {
	v.t.Helper()
	if !strings.Contains(v.page, text) {
		v.t.Errorf("%s (%d) does not show %q:\n%s", v.at, v.status, text, v.page)
	}
}

func TestThePagesOfJobs(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("admin")
	v.sees("Overview")
	v.get("/admin/enqueue?type=mail.send").sees(`name="p.to"`)
	v.press("p.to", "p.to", "nobody", "more", `{"subject":"fail"}`).sees2("no mail address")
	v.press("p.to", "p.to", "a@b.example", "more", `{"subject":"fail","password":"hunter2"}`).sees("mail.send", "•••")
	id := strings.TrimPrefix(v.at, "/admin/jobs/")
	v.get("/admin/jobs?text=b.example").sees(id)
	v.get("/admin/jobs?text=elsewhere").sees("No jobs here")
	v.get("/admin/jobs?since=soon").sees2("since must be")
	s.work()
	v.get("/admin/jobs/"+id).sees("550 no such user a@b.example", "Retry", "curl -X POST")
	if strings.Contains(v.page, "hunter2") {
		t.Error("the page shows a secret")
	}
	v.get("/admin/failed").sees("550 no such user")
	v.press("/admin/failed/canary").sees("Waiting to start")
	s.work()
	v.get(v.at).sees("It failed again")
	v.get("/admin/failed").press(`value="retry"`).sees("1 failed job will go back to its queue", "Yes, do it")
	v.press("sure").sees("1 job retried")
	s.work()
	v.get("/admin/jobs/"+id+"/edit").sees("•••").press("payload", "payload", `{"to":"c@d.example","password":"•••"}`)
	v.sees("A new job is in the queue")
	var password int
	if err := s.db.Get(&password, "SELECT COUNT(*) FROM jobs WHERE payload LIKE '%hunter2%'"); err != nil ||
		password != 1 {
		t.Errorf("the edited job lost its secret: %d %v", password, err)
	}
	s.work()
	v.get(v.at).sees("Completed", "accepted", "c@d.example", "Changed payload", `href="/admin/jobs/`+id+`"`,
		`<del>−   &#34;to&#34;: &#34;a@b.example&#34;`, `<ins>+   &#34;to&#34;: &#34;c@d.example&#34;`)
	v.get("/admin/jobs/" + id).press("/delete").sees("will be deleted").press("sure").sees("The failed job is deleted")
	if v.get("/admin/jobs/nothing"); v.status != http.StatusNotFound {
		t.Errorf("%d", v.status)
	}
}

// TestAJobKnowsItsEquals lists those before it with the same payload, not others.
func TestAJobKnowsItsEquals(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	mail := func(to string) string {
		return s.enqueue(`{"type":"mail.send","payload":{"to":"` + to + `","subject":"x"}}`)
	}
	equal, other := mail("a@b.example"), mail("c@d.example")
	s.work()
	waiting, mine, later := mail("a@b.example"), mail("a@b.example"), mail("c@d.example")
	v := s.visitor(t).signIn("viewer").get("/admin/jobs/"+mine).sees("Equal jobs before", "/admin/jobs/"+equal,
		"/admin/jobs/"+waiting)
	for _, not := range []string{other, later} {
		if strings.Contains(v.page, not) {
			t.Errorf("%s has another payload", not)
		}
	}
}

func TestTheExportOfFailedJobsHasThemAll(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for i := range 620 {
		s.enqueue(
			fmt.Sprintf(`{"type":"mail.send","payload":{"to":"%d@b.example","subject":"fail","password":"hunter2"}}`,
				i))
	}
	s.work()
	a := s.admin("GET", "/admin/failed/export", nil).want(t, 200)
	if lines := bytes.Count(a.body, []byte("\n")); lines != 620 || bytes.Contains(a.body, []byte("hunter2")) {
		t.Errorf("%d lines", lines)
	}
}
