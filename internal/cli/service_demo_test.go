package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// demoSite is a site of a running demo, as a browser without scripts sees it.
type demoSite struct {
	t       *testing.T
	client  *http.Client
	base    *url.URL
	seen    map[string]int  // pages of a kind
	pressed map[string]bool // buttons of a kind
	waiting []string        // pages to look at
	later   []string        // pages with buttons that are pressed last
	last    bool
	said    []string // what the presses were answered
}

// startDemo starts the demo in a new folder and waits until its jobs are done.
func startDemo(t *testing.T) (s *service, dir string) {
	t.Helper()
	s = newService(t, "")
	dir = filepath.Join(t.TempDir(), "site")
	s.cmd.Args = []string{s.cmd.Path, "--log-level", "info", "--set", "http.listen=127.0.0.1:0", "demo", "--dir", dir}
	s.start()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c := exec.Command(s.cmd.Path, "--cms", dir, "--json", "jobs", "list", "--queue", "default", "--status",
			"queued,processing")
		c.Env = s.env
		if out, err := c.Output(); err == nil && !strings.Contains(string(out), `"id"`) {
			return s, dir
		}
		if time.Now().After(end) {
			t.Fatalf("the demo's jobs are not done:\n%s", s.log())
		}
	}
}

// signedIn signs in to a site of the demo.
func signedIn(t *testing.T, s *service, name string, jar http.CookieJar) *demoSite {
	t.Helper()
	base, err := url.Parse(s.url + "/sites/" + name + "/admin")
	if err != nil {
		t.Fatal(err)
	}
	d := &demoSite{t: t, base: base, client: &http.Client{Jar: jar, Timeout: time.Minute}, seen: map[string]int{},
		pressed: map[string]bool{}}
	status, body, _ := d.send("POST", base.JoinPath("sign-in").String(), url.Values{"name": {"admin"},
		"password": {"demo"}})
	if status != http.StatusOK || strings.Contains(body, `name="password"`) {
		t.Fatalf("signing in to %s: %d", name, status)
	}
	return d
}

// Two sites are in one process, each with its own past, and who signed in to both can switch.
func TestTheDemoHasTwoSites(t *testing.T) {
	t.Parallel()
	s, _ := startDemo(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	news := signedIn(t, s, "news", jar)
	if _, page, _ := news.send("GET", news.base.String(), nil); strings.Contains(page, "/sites/club/admin") {
		t.Error("the first site names the second one to somebody who is not signed in there")
	}
	club := signedIn(t, s, "club", jar)
	for from, to := range map[*demoSite]string{news: "/sites/club/admin", club: "/sites/news/admin"} {
		from.until(`href="`+to+`"`, from.base.String())
	}
	club.until("No complete backup", club.base.String())
	page := club.until("no space left on device", club.base.JoinPath("failed").String())
	if strings.Contains(page, "mail.demo.example") {
		t.Error("the failures of the second site are those of the first")
	}
}

// until loads a page until it says something: what takes long to count comes later.
func (d *demoSite) until(says, to string) (page string) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, page, _ = d.send("GET", to, nil); strings.Contains(page, says) {
			return page
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s does not say %q:\n%s", to, says, page)
		}
	}
}

// notPressed are the buttons that would end the walk.
var notPressed = map[string]string{
	"/admin/sign-out":        "it ends the session",
	"/admin/look":            "the words of the other language would be taken for other buttons",
	"/admin/workers/restart": "the site is away until it is opened again",
	"/admin/workers/ID/stop": "the site is away until it is opened again",
}

// One job of the largest cause can be tried, and it succeeds: the mail server is back.
func TestTheDemosLargestCauseCanBeTried(t *testing.T) {
	t.Parallel()
	s, _ := startDemo(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := signedIn(t, s, "news", jar)
	failed := d.base.JoinPath("failed").String()
	page := d.until("/failed/canary", failed)
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	buttons := buttonsOf(root, failed)
	i := slices.IndexFunc(buttons, func(b button) bool { return strings.HasSuffix(b.action, "/failed/canary") })
	if i < 0 {
		t.Fatal("no cause can be tried")
	}
	status, _, at := d.send("POST", buttons[i].action, buttons[i].values)
	if status != http.StatusOK {
		t.Fatalf("trying one job of the largest cause: %d", status)
	}
	page = d.until("It worked.", at)
	if !strings.Contains(page, "8 more jobs have this cause") {
		t.Error("the largest cause does not have nine jobs")
	}
	// Only the service makes webhooks: they can be retried, and no form offers another payload.
	_, page, _ = d.send("GET", d.base.JoinPath("jobs").String()+"?status=failed&type=webhook.deliver", nil)
	link := regexp.MustCompile(`/admin/jobs/([0-9a-f-]{36})"`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("no webhook has failed")
	}
	status, page, _ = d.send("GET", d.base.JoinPath("jobs", link[1]).String(), nil)
	if status != http.StatusOK || strings.Contains(page, link[1]+`/edit"`) ||
		!strings.Contains(page, link[1]+`/again"`) {
		t.Errorf("the page of a failed webhook: %d, with the wrong actions", status)
	}
	if status, _, _ = d.send("GET", d.base.JoinPath("jobs", link[1], "edit").String(), nil); status != 403 {
		t.Errorf("the form for another payload of a webhook: %d", status)
	}
}

// pressedLast removes what others are pressed on.
var pressedLast = regexp.MustCompile(`/delete\?|bulk\? (delete|cancel)|/revoke|/remove`)

// askedOnly is what is asked for and then left: a restore replaces the database under
// everything else. Its plan is shown with the question.
var askedOnly = regexp.MustCompile(`/restore\?|/post\?|/moment`)

// Whatever a visitor presses in the demo works: each form of each page is sent as a browser
// sends it, with its confirmation.
func TestEveryButtonOfTheDemoWorks(t *testing.T) {
	t.Parallel()
	s, _ := startDemo(t)
	for _, name := range []string{"news", "club"} {
		t.Run(name, func(t *testing.T) {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			d := signedIn(t, s, name, jar)
			d.waiting = []string{d.base.String(), d.base.JoinPath("jobs").String() + "?status=failed"}
			for len(d.waiting) > 0 {
				page := d.waiting[0]
				d.waiting = d.waiting[1:]
				d.pressAll(page)
			}
			for _, page := range d.later {
				d.last = true
				d.pressAll(page)
			}
			if len(d.pressed) < 70 {
				t.Errorf("only %d kinds of buttons were found", len(d.pressed))
			}
			t.Logf("%d kinds of pages, %d kinds of buttons:\n%s", len(d.seen), len(d.pressed),
				strings.Join(d.said, "\n"))
		})
	}
}

// send returns the last answer after redirects and its address.
func (d *demoSite) send(method, to string, form url.Values) (status int, body, at string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, to, strings.NewReader(form.Encode()))
	if err != nil {
		d.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := d.client.Do(r)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, to, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, to, err)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		text = nil
	}
	return answer.StatusCode, string(text), answer.Request.URL.String()
}

// identifier is a part of an address that names one of many.
var identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{8}T[0-9A-Za-z-]+(@\w+)?|` +
	`\b[0-9a-f]{16}\b|[^/]+:[0-9]+:[0-9a-f]+|\b\d+\b`)

// kind is what addresses of the same page have in common.
func kind(u *url.URL) string {
	names := make([]string, 0, len(u.Query()))
	for name := range u.Query() {
		names = append(names, name)
	}
	slices.Sort(names)
	return identifier.ReplaceAllString(u.Path, "ID") + "?" + strings.Join(names, "&")
}

// pressAll looks at a page and presses what was not pressed on another one.
func (d *demoSite) pressAll(page string) {
	for {
		status, body, at := d.send("GET", page, nil)
		if status == http.StatusNotFound && d.last {
			return // a button removed it
		}
		if status == http.StatusConflict && strings.HasSuffix(page, "/edit") {
			return // the job has ended since its page was seen, and its payload is not kept
		}
		if status >= 400 {
			d.t.Errorf("GET %s: %d", page, status)
		}
		root, err := html.Parse(strings.NewReader(body))
		if err != nil {
			d.t.Fatal(err)
		}
		d.follow(root, at)
		buttons := buttonsOf(root, at)
		i := slices.IndexFunc(buttons, func(b button) bool {
			return !d.pressed[b.kind()] && (d.last || !pressedLast.MatchString(b.kind()))
		})
		if i < 0 && len(buttons) > 0 && !d.last {
			d.later = append(d.later, page)
		}
		if i < 0 {
			return
		}
		d.pressed[buttons[i].kind()] = true
		d.press(page, buttons[i])
	}
}

// follow notes the pages that a page leads to, a few of a kind.
func (d *demoSite) follow(root *html.Node, at string) {
	here, err := url.Parse(at)
	if err != nil {
		d.t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Data != "a" || attribute(n, "href") == "" {
			continue
		}
		to, err := here.Parse(attribute(n, "href"))
		if err != nil || to.Host != d.base.Host || !strings.HasPrefix(to.Path, d.base.Path) {
			continue
		}
		to.Fragment = ""
		if d.seen[to.String()]++; d.seen[to.String()] > 1 {
			continue
		}
		most := 4
		if to.RawQuery != "" {
			most = 2 // of a list by another order or filter
		}
		if d.seen[kind(to)]++; d.seen[kind(to)] <= most {
			d.waiting = append(d.waiting, to.String())
		}
	}
}

func (d *demoSite) press(page string, b button) {
	path, _, _ := strings.Cut(strings.TrimPrefix(b.kind(), strings.TrimSuffix(d.base.Path, "/admin")), "?")
	if notPressed[path] != "" {
		return
	}
	status, body, at := d.send("POST", b.action, b.values)
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, sure := range buttonsOf(root, at) {
		if sure.values.Get("sure") == "yes" && !askedOnly.MatchString(b.kind()) {
			if word := typedWord.FindStringSubmatch(textOf(root)); word != nil {
				sure.values.Set("typed", word[1])
			}
			status, body, at = d.send("POST", sure.action, sure.values)
			if root, err = html.Parse(strings.NewReader(body)); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	d.said = append(d.said, fmt.Sprintf("%s → %s %d %s", strings.TrimPrefix(b.kind(), d.base.Path),
		strings.TrimPrefix(at, d.base.String()), status, noticeOf(root)))
	if status == http.StatusConflict && strings.Contains(b.kind(), "/jobs/ID/") {
		return // the job began or ended meanwhile
	}
	problem := faultOf(root)
	if b.values.Has("ids") && problem == "No job matches the filter; nothing was changed." {
		return // none of those on the page is in the state that the action is for
	}
	if status >= 400 || problem != "" {
		d.t.Errorf("%s: %q to %s with %v (without %v): %d %s", page, b.text, b.action, b.values, b.empty, status, problem)
	}
	if at != b.action { // it was sent to a page
		d.follow(root, at)
	}
}

// typedWord is the word that a confirmation asks for.
var typedWord = regexp.MustCompile(`Type “(.+?)” to confirm`)

// noticeOf is what a page says of the action before it.
func noticeOf(root *html.Node) string {
	for n := range root.Descendants() {
		if strings.Contains(" "+attribute(n, "class")+" ", " notice ") {
			return textOf(n)
		}
	}
	return ""
}

// faultOf is what a page says went wrong with the action before it.
func faultOf(root *html.Node) string {
	for n := range root.Descendants() {
		class := " " + attribute(n, "class") + " "
		if has(n, "hidden") {
			continue
		}
		if attribute(n, "role") == "alert" || strings.Contains(class, " fault ") || strings.Contains(class, " problem ") {
			return textOf(n)
		}
	}
	return ""
}
