package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// menuCount is the figure beside an entry of the menu, and its level; "" is none.
func (v *visitor) menuCount(path string) (figure, level string) {
	entry := regexp.MustCompile(`(?s)<li><a href="` + path + `"[^>]*>.*?</li>`).FindString(v.page)
	found := regexp.MustCompile(`(?s)class="count ([a-z]*)"([^>]*)><b>([^<]*)</b>`).FindStringSubmatch(entry)
	if found == nil || strings.Contains(found[2], "hidden") {
		return "", ""
	}
	return found[3], found[1]
}

// TestTheMenuCountsWhatNeedsALook has waiting and failed jobs, a condition of the
// backups, and looks at a page that shows none of them itself.
func TestTheMenuCountsWhatNeedsALook(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Conditions = func(context.Context) []web.Condition {
			return []web.Condition{{Name: "disk_full", Active: true, Page: "/admin/backups"},
				{Name: "clock_jump", Page: "/admin/usage"}}
		}
	})
	for range 2 {
		s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
	}
	s.work()
	for range 3 {
		s.enqueue(`{"type":"cache.clear"}`)
	}
	v := s.visitor(t).signIn("admin")
	for path, want := range map[string][2]string{"/admin/jobs": {"3", ""}, "/admin/failed": {"2", "bad"},
		"/admin/workers": {"1", ""}, "/admin": {"1", "warn"}, "/admin/backups": {"1", "warn"}, "/admin/usage": {},
		"/admin/queues": {}} {
		deadline := time.Now().Add(patience)
		for {
			figure, level := v.get("/admin/settings").menuCount(path)
			if figure == want[0] && level == want[1] {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has %q %q, not %q", path, figure, level, want)
			}
		}
	}
	v.sees("<h2>Site</h2>", "<h2>Administration</h2>", `<span class="hide-phone">Administration</span>`)
	if v = s.visitor(t).signIn("viewer").get("/admin/jobs"); strings.Contains(v.page, "Administration") {
		t.Error("a viewer is shown the pages of administrators")
	}
}

// TestSearchWithoutJavaScript finds pages, jobs and actions by the form, and does an
// action from there.
func TestSearchWithoutJavaScript(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","password":"hunter2"}}`)
	v := s.visitor(t).signIn("admin")
	v.press(`id="seek"`, "q", "webHOOKS").sees(`href="/admin/webhooks"`, "Go to")
	for _, query := range []string{id, "1", "%231", "mail.s"} {
		v.get("/admin/search?q="+query).sees(`href="/admin/jobs/`+id+`"`, "mail.send")
	}
	v.get("/admin/search?q=mail.s").sees(`href="/admin/jobs?type=mail.send"`)
	v.get("/admin/search?q=").sees("Recent jobs", "Actions", "Enqueue a job")
	v.get("/admin/search?q=nothing+like+it").sees("Nothing fits", `href="/admin/jobs?text=nothing`)
	if strings.Contains(v.page, "hunter2") {
		t.Error("the search shows a secret")
	}
	v.get("/admin/search?q=" + strings.Repeat("x", 5000)).sees("Nothing fits")

	v.get("/admin/search?q=pause").press("cmsjobs/pause").sees("is paused. 1 job waits in it", `id="undo"`)
	v.get("/admin/search?q=queue").sees("Continue the queue").press("cmsjobs/continue").sees("is active again")
	v.get("/admin/search?q=empty").press(`value="cache.clear"`).sees("will be emptied").press("sure").sees(
		"cache.clear is waiting in its queue", `<a href="/admin/jobs/`)
	if v.at != "/admin/usage" {
		t.Errorf("the action led to %s", v.at)
	}
	v.get("/admin/help").sees("cmsjobs doctor", "Ctrl K")
}

// TestTheSearchOffersWhatTheCallerMayDo compares roles; the forms are refused to
// who may not, whatever a list shows.
func TestTheSearchOffersWhatTheCallerMayDo(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"cache.clear"}`)
	v := s.visitor(t).signIn("viewer").get("/admin/search?q=")
	for _, hidden := range []string{"Actions", "Empty the cache", "Pause the queue", "Enqueue a job", "/admin/audit"} {
		if strings.Contains(v.page, hidden) {
			t.Errorf("a viewer is offered %q", hidden)
		}
	}
	token := regexp.MustCompile(`name="_csrf" value="([^"]+)"`).FindStringSubmatch(v.page)
	v.post("/admin/queues/cmsjobs/pause", map[string][]string{"_csrf": {token[1]}, "sure": {"yes"}})
	if v.status != http.StatusForbidden {
		t.Errorf("a viewer paused a queue: %d", v.status)
	}
}

// TestAProblemPageLeadsBack goes to a job that is not there, and sends a form that is refused.
func TestAProblemPageLeadsBack(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("admin")
	v.get("/admin/jobs/01900000-0000-7000-8000-000000000000").sees2(`class="btn main" href="/admin/jobs"`)
	v.sees2(`href="/admin/help"`)
	token := regexp.MustCompile(`name="_csrf" value="([^"]+)"`).FindStringSubmatch(v.page)
	v.post("/admin/start", map[string][]string{"_csrf": {token[1]}, "type": {"no.such"}, "back": {"/admin/usage?x=1"}})
	v.sees2(`class="btn main" href="/admin/usage?x=1"`)
	v.post("/admin/start", map[string][]string{"_csrf": {token[1]}, "type": {"no.such"}, "back": {"//evil.example/"}})
	if v.status < 400 || strings.Contains(v.page, "evil.example") {
		t.Errorf("%d leads away", v.status)
	}
}

// phone gives the page a phone's width.
func (b *browser) phone() {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.setDeviceMetricsOverride",
			map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	})
}

// scripts says whether pages may run JavaScript.
func (b *browser) scripts(may bool) {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.setScriptExecutionDisabled", map[string]any{"value": !may}, nil)
	})
}

// shown is an expression: is an element there to be seen?
func shown(selector string) string {
	return fmt.Sprintf(`(e => !!e && e.checkVisibility() && e.getBoundingClientRect().width > 0)(document.querySelector(%q))`,
		selector)
}

// TestTheDrawerOfAPhoneNeedsNoScript opens and closes the navigation at 390 px, and
// signs out there.
func TestTheDrawerOfAPhoneNeedsNoScript(t *testing.T) {
	b := newBrowser(t, newSite(t, jobstest.SQLite, furnished))
	b.signIn("admin")
	b.phone()
	b.scripts(false)
	b.open("/admin/settings")
	if eval[bool](b, shown("#nav .nav a")) {
		t.Error("the navigation covers the page before it is asked for")
	}
	b.click("a[href='#nav']")
	b.until(shown("#nav .nav a[href='/admin/jobs']"))
	b.picture("/admin-drawer", "phone")
	b.click("a.close-nav")
	b.until("!" + shown("#nav .nav a"))
	b.click("a[href='#nav']")
	b.press("#nav .nav a[href='/admin/audit']")
	b.sees("Audit log")
	b.scripts(true)
	b.open("/admin/settings")
	b.click("a[href='#nav']")
	b.until(`document.activeElement.matches(".close-nav") && document.querySelector(".page").inert`)
	b.keys("Escape")
	b.until("!" + shown("#nav .nav a") + ` && !document.querySelector(".page").inert`)
}

// at waits for a page to be there as a whole.
func (b *browser) at(path string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, path))
}

// keys presses keys by their names, one after the other.
func (b *browser) keys(names ...string) {
	b.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9}
	for _, name := range names {
		event := map[string]any{"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
		if name == "Enter" {
			event["text"] = "\r"
		}
		if letter, with := strings.CutPrefix(name, "Control+"); with {
			event = map[string]any{"key": letter, "modifiers": 2}
		}
		for _, kind := range []string{"keyDown", "keyUp"} {
			event["type"] = kind
			b.within(func(ctx context.Context) error { return b.page.call(ctx, "Input.dispatchKeyEvent", event, nil) })
		}
	}
}

// TestThePaletteByKeyboard goes to a page, finds a job by its id, and runs an
// action whose answer is a toast, without a pointer.
func TestThePaletteByKeyboard(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	g := &gated{step: make(chan struct{})}
	g.register(s.registry)
	id := s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	b := newBrowser(t, s)
	b.signIn("admin")
	const ready = `document.querySelector("#palette").open && document.querySelector("#palette .opt.at")?.innerText`
	search := func(text, first string) {
		b.fill("#palette input", text)
		b.until(fmt.Sprintf(`(%s || "").includes(%q)`, ready, first))
	}

	b.open("/admin/audit")
	b.keys("Control+k")
	b.until(`!!` + shown("#palette") + ` && document.activeElement.matches("#palette input")`)
	b.picture("/admin-palette", "light")
	search("media", "Media")
	b.keys("Enter")
	b.at("/admin/media")

	b.within(func(ctx context.Context) error { return b.page.key(ctx, "/") })
	search(id, "mail.send")
	b.keys("Enter")
	b.at("/admin/jobs/" + id)

	b.open("/admin/audit")
	b.keys("Control+k")
	search("back", "Back up now")
	b.keys("ArrowDown")
	b.until(`document.activeElement.matches("#palette .opt") && document.activeElement.innerText !== "Back up now"`)
	b.keys("ArrowUp", "Enter")
	b.until(shown(".toasts[role=status] .toast"))
	b.sees("backup.generate is waiting in its queue")
	b.picture("/admin-toast", "light")
	b.press(".toast a")
	b.until(`location.pathname.startsWith("/admin/jobs/")`)

	b.keys("Control+k")
	b.until(ready + ` !== undefined`)
	b.keys("Escape")
	b.until(`!document.querySelector("#palette").open`)
	b.quietConsole()
}

// firstPaint is the most that a page and what it loads may weigh, compressed.
const firstPaint = 100 << 10

// TestAPageIsLight adds up what a browser gets that has nothing yet: the page
// itself as if it were compressed, and its files as they come.
func TestAPageIsLight(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	for i := range 60 {
		s.enqueue(fmt.Sprintf(`{"type":"mail.send","payload":{"to":"person%d@b.example","subject":"Number %d"}}`, i, i))
	}
	for _, path := range []string{"/admin", "/admin/jobs", "/admin/backups"} {
		page := s.admin("GET", path, nil)
		sent := s.admin("GET", path, nil, header("Accept-Encoding", "gzip"))
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(page.body); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		whole := packed.Len()
		files := map[string]bool{}
		for _, found := range regexp.MustCompile(`/admin/assets/[^"#]+`).FindAllString(string(page.body), -1) {
			files[found] = true
		}
		for file := range files {
			a := s.do("GET", file, nil, header("Accept-Encoding", "gzip"))
			if a.status != 200 {
				t.Fatalf("%s: %d", file, a.status)
			}
			whole += len(a.body)
			plain := s.do("GET", file, nil, header("Accept-Encoding", "identity"))
			if zipped := a.header.Get("Content-Encoding") == "gzip"; zipped != (len(a.body) < len(plain.body)) {
				t.Errorf("%s: %d bytes of %d, encoding %q", file, len(a.body), len(plain.body),
					a.header.Get("Content-Encoding"))
			}
		}
		wire := whole - packed.Len() + len(sent.body) // the service compresses files only
		t.Logf("%s: %d bytes in %d files, %d as they are sent without a proxy", path, whole, 1+len(files), wire)
		if path == "/admin" && wire > 100_000 {
			t.Errorf("the overview is sent as %d bytes", wire)
		}
		if len(files) < 5 || whole > firstPaint {
			t.Errorf("%s weighs %d bytes in %d files, more than %d", path, whole, len(files), firstPaint)
		}
	}
}
