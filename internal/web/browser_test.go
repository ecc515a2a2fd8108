package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// browser is a person at Debian's chromium.
type browser struct {
	t    testing.TB
	page *chromium
	base string

	mu     sync.Mutex
	faults []string // errors on the console
}

// patience is for slow machines; nothing waits that long where all is well.
const patience = 2 * time.Minute

func newBrowser(t testing.TB, s *site) *browser {
	t.Helper()
	return newBrowserAt(t, func() string {
		base, _ := serve(t, s)
		return base
	})
}

// newBrowserAt is newBrowser for a server that start starts.
func newBrowserAt(t testing.TB, start func() string) *browser {
	t.Helper()
	jobstest.Chromium(t)
	b := &browser{t: t, base: start()}
	b.page = startChromium(t, b.hear)
	return b
}

// hear collects what a console shows in red.
func (b *browser) hear(method string, params json.RawMessage) {
	var e struct {
		Type  string // of a call to console
		Args  []struct{ Value, Description any }
		Entry struct{ Level, Text, URL string }
		Fault struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	if json.Unmarshal(params, &e) != nil {
		return
	}
	text := ""
	switch {
	case method == "Runtime.consoleAPICalled" && (e.Type == "error" || e.Type == "assert"):
		text = fmt.Sprint(e.Args)
	case method == "Runtime.exceptionThrown":
		text = e.Fault.Text + " " + e.Fault.Exception.Description
	case method == "Log.entryAdded" && e.Entry.Level == "error":
		text = e.Entry.Text + " " + e.Entry.URL
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

func (b *browser) quietConsole() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("on the console: %s", f)
	}
}

// within gives one thing that the browser does its time.
func (b *browser) within(do func(ctx context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := do(ctx); err != nil {
		b.t.Fatalf("%v\n%s", err, b.main())
	}
}

// main is what the page shows, for complaints.
func (b *browser) main() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var text string
	if err := b.page.evaluate(ctx, `location.href + "\n" + document.querySelector("main")?.innerText`, &text); err != nil {
		return err.Error()
	}
	return text
}

// eval evaluates an expression in the page.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	b.within(func(ctx context.Context) error {
		if err := b.page.evaluate(ctx, expression, &value); err != nil {
			return fmt.Errorf("%.200s: %w", expression, err)
		}
		return nil
	})
	return value
}

// fill writes a text into a field, in place of what it has.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(e => !!e && (e.focus(), e.value = "", true))(document.querySelector(%q))`, selector))
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Input.insertText", map[string]any{"text": text}, nil)
	})
}

// until waits for an expression to be true, over loads of pages.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	look := time.NewTicker(30 * time.Millisecond)
	defer look.Stop()
	for {
		var is bool
		if err := b.page.evaluate(ctx, expression, &is); err == nil && is {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			b.t.Fatalf("never came true: %s\n%s", expression, b.main())
		}
	}
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.within(func(ctx context.Context) error { return b.page.navigate(ctx, b.base+path) })
	b.until(`document.readyState === "complete" && !!document.querySelector("main")`)
}

// click clicks what is there at this moment: a list that is just loaded again has
// other elements than those that were looked for.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(e => !!e && (e.click(), true))(document.querySelector(%q))`, selector))
}

// press clicks and waits for the page that comes.
func (b *browser) press(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(e => !!e && (window.before = true, e.click(), true))(document.querySelector(%q))`, selector))
	b.until(`window.before !== true && document.readyState === "complete"`)
}

// sees waits until a text is on the page, without loading it again.
func (b *browser) sees(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

func (b *browser) signIn(role string) {
	b.t.Helper()
	b.open("/admin/sign-in")
	b.fill("#name", role)
	b.fill("#password", "right")
	b.press("form button.main")
	b.sees("Oldest wait")
}

// gated is work that waits for the test at each step.
type gated struct{ step chan struct{} }

func (g *gated) register(r *jobs.Registry) {
	jobType := jobs.Kind[map[string]any]{Name: "backup.generate", Queue: "cmsjobs"}
	jobs.Handle(r, jobType, func(ctx context.Context, _ jobs.Job, _ map[string]any) error {
		for done, note := range []string{"dumping tables", "packing files", "verifying"} {
			jobs.Report(ctx, int64(done), 3, note)
			select {
			case <-g.step:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return jobs.SetResult(ctx, map[string]int{"tables": 42})
	})
}

// worker runs a real worker beside the server until the test ends.
func (s *site) worker() {
	s.t.Helper()
	w, err := jobs.NewWorker(jobs.Config{Source: s.store, Workers: s.store, Registry: s.registry,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Float64,
		Info: jobs.WorkerInfo{ID: "host:1:a", Host: "host"}, Queues: []string{"cmsjobs"}, Slots: 2,
		Lease: 10 * time.Second, PollMin: 20 * time.Millisecond, PollMax: 100 * time.Millisecond, Grace: time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the worker: %v", err)
		}
	})
}

// TestAPersonWorksWithThePages walks as an operator does: signs in, filters,
// retries in bulk, pauses, runs a schedule, backs up and watches it, and sees a
// job fail and work at the second try, all without loading a page again.
func TestAPersonWorksWithThePages(t *testing.T) {
	g := &gated{step: make(chan struct{})}
	s := newSite(t, jobstest.SQLite, furnished)
	g.register(s.registry)
	for i := range 3 {
		s.enqueue(fmt.Sprintf(`{"type":"mail.send","payload":{"to":"%d@b.example","subject":"fail"}}`, i))
	}
	s.work()
	b := newBrowser(t, s)
	b.signIn("admin")

	b.open("/admin/jobs")
	b.fill("#q", "2@b.example")
	b.press(".filter button")
	b.sees("550 no such user 2@b.example")

	b.open("/admin/jobs?status=failed")
	b.press("#bulk-retry")
	b.sees("3 failed jobs will go back")
	b.press("#yes")
	b.sees("3 jobs retried")

	for i := range 3 {
		s.enqueue(fmt.Sprintf(`{"type":"cache.clear","delay":900,"payload":{"n":%d}}`, i))
	}
	b.open("/admin/jobs?status=queued&type=cache.clear")
	b.until(`document.querySelectorAll("td.pick input").length === 3`)
	b.click("tr:nth-child(1) td.pick input")
	b.click("tr:nth-child(3) td.pick input")
	s.enqueue(`{"type":"cache.clear","delay":900}`) // the list is loaded again, and the ticks stay
	b.until(
		`document.querySelectorAll("td.pick input").length === 4 && document.querySelectorAll("td.pick input:checked").length === 2`)
	b.press("#chosen-cancel")
	b.sees("2 waiting jobs will leave")
	b.press("#yes")
	b.sees("2 jobs cancelled")
	b.press("#chosen-cancel")
	b.sees("No job is selected")

	b.open("/admin/usage")
	b.press("[id='do-cache.clear']")
	b.sees("The cache will be emptied")
	b.click("main a.btn")
	b.sees("Storage usage")

	b.open("/admin/queues")
	b.press("#q-cmsjobs")
	b.sees("is paused")
	b.press(".toast #undo")
	b.sees("is active again")

	b.open("/admin/schedules")
	b.press("#run-sitemap")

	s.worker()
	b.open("/admin/backups")
	b.press("#now")
	eval[bool](b, `window.same = true`)
	for _, note := range []string{"dumping tables", "packing files", "verifying"} {
		b.sees(note)
		g.step <- struct{}{}
	}
	b.sees("Done in")
	if !eval[bool](b, `window.same === true`) {
		t.Error("the page was loaded again to show the end")
	}

	b.open("/admin/enqueue?type=mail.send")
	b.fill("#p-to", "x@y.example")
	b.fill("#more", `{"subject":"fail"}`)
	b.press("form.card button.main")
	b.sees("550 no such user x@y.example")
	b.press("main a[href$='/edit']")
	b.fill("#payload", `{"to":"x@y.example"}`)
	b.press("form.card button.main")
	b.sees("Completed")
	b.sees("sent to x@y.example")
	b.quietConsole()
}

// TestEveryPageIsAccessible lets axe judge each page in both themes and at a
// phone's width. CMSJOBS_SCREENSHOTS names a folder for pictures of them.
func TestEveryPageIsAccessible(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, plentiful)
	var ids []string
	for i := range 12 {
		subject := []string{"Welcome", "fail", "Your order"}[i%3]
		ids = append(ids,
			s.enqueue(
				fmt.Sprintf(
					`{"type":"mail.send","payload":{"to":"person%d@example.org","subject":"%s","password":"x"}}`, i,
					subject)))
	}
	s.work()
	s.enqueue(`{"type":"cache.clear","delay":3600}`)
	s.enqueue(
		`{"type":"mail.send","delay":60,"payload":{"to":"later@example.org","subject":"A rather long subject that needs space on a narrow screen"}}`)
	withPHP(t, s)
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s)
	b.within(func(ctx context.Context) error { // half a megabyte: not sent for each page
		return b.page.call(ctx, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": string(axe)}, nil)
	})
	b.judge(string(axe), everything, "/admin/sign-in", "light-signin")
	b.judge(string(axe), everything, "/docs/backup", "light-stranger")
	b.signIn("admin")
	pages := append(slices.Clone(parts), "/admin/jobs/"+ids[1], "/admin/jobs/"+ids[1]+"/edit",
		"/admin/enqueue?type=mail.send", "/admin/mail/1", "/admin/schedules/sitemap", "/admin/batches/"+halfDone.ID,
		"/admin/jobs/"+phpUUID, "/admin/jobs/"+failedUUID, "/admin/help", "/docs", "/docs?q=backup", "/docs/operating",
		"/docs/settings", "/docs/benchmarks", "/docs/adr/0001-the-cms-table-is-the-queue", "/api/docs",
		"/api/docs?q=backups", "/admin/search?q=mail", "/admin/mail/templates", "/admin/backups/moment",
		"/admin/backups/b.tar.zst/contents")
	leftOut(t, pages)
	for _, theme := range []struct{ name, rules string }{{"light", everything}, {"dark", colours}} {
		b.press(fmt.Sprintf(`button[name=theme][value=%s]`, theme.name))
		for _, path := range pages {
			b.judge(string(axe), theme.rules, path, theme.name)
			if eval[bool](b, `[...document.querySelectorAll(".tbl-scroll:not(.chapter *)")].some(e => e.scrollWidth > e.clientWidth + 1)`) {
				t.Errorf("%s has a table that is wider than its window", path)
			}
		}
	}
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Emulation.setDeviceMetricsOverride",
			map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	})
	for _, path := range pages {
		b.judge(string(axe), everything, path, "phone")
		if eval[bool](b, `document.documentElement.scrollWidth > 391`) {
			t.Errorf("%s is wider than a phone", path)
		}
		for _, cut := range eval[[]string](b, cutOff) {
			t.Errorf("%s has a button that a phone cuts off: %s", path, cut)
		}
	}
	b.quietConsole()
	eval[bool](b, `document.querySelector("main").insertAdjacentHTML("beforeend", "<input><img src='data:,'>"); true`)
	if found := serious(b.violations(string(axe), everything)); len(found) < 2 {
		t.Errorf("axe does not see faults that are there: %+v", found)
	}
}

// cutOff are the buttons that leave the window although nothing around them scrolls.
const cutOff = `[...document.querySelectorAll("main .btn")].filter(e => e.checkVisibility() && !e.closest(".tbl-scroll, .bulk") &&
	e.getBoundingClientRect().right > innerWidth + 1).map(e => e.innerText)`

// leftOut fails on pages that no address shows.
func leftOut(t *testing.T, pages []string) {
	t.Helper()
	for _, r := range allRoutes() {
		if r.Method != "GET" || r.Type != "text/html" || r.Path == "/admin/sign-in" || strings.HasSuffix(r.Path, "/export") {
			continue
		}
		if strings.HasPrefix(r.Path, "/admin/mail/") && (strings.HasSuffix(r.Path, "/preview") ||
			strings.HasSuffix(r.Path, "/body")) {
			continue // the page of a mail, in a frame
		}
		parts := strings.Split(r.Path, "/")
		shown := slices.ContainsFunc(pages, func(page string) bool {
			path, _, _ := strings.Cut(page, "?")
			words := strings.Split(path, "/")
			for i := range min(len(words), len(parts)) {
				if words[i] != parts[i] && !strings.HasPrefix(parts[i], ":") {
					return false
				}
			}
			return len(words) == len(parts)
		})
		if !shown {
			t.Errorf("no page of %s is judged", r.Path)
		}
	}
}

type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// What axe looks at. Themes differ in colours and nothing else: in the second one only they
// are looked at. On a phone all is, as what lies over what may differ.
const (
	everything = `rules: {"target-size": {enabled: true}}`
	colours    = `runOnly: ["color-contrast", "link-in-text-block"]`
)

// violations are what axe finds on the page. preload is for rules that it does not apply by
// itself, as that of a locked orientation, and for sound, which no page has. What appears
// has other colours until it is there: axe looks then.
func (b *browser) violations(axe, rules string) []violation {
	b.t.Helper()
	b.until(`document.getAnimations().every(a => a.playState !== "running" || a.effect.getComputedTiming().endTime === Infinity)`)
	if !eval[bool](b, `"axe" in window`) {
		eval[bool](b, axe+"; true")
	}
	return eval[[]violation](b,
		`axe.run(document, {preload: false, resultTypes: ["violations"], `+rules+`}).then(r => r.violations.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`)
}

func serious(all []violation) []violation {
	return slices.DeleteFunc(all, func(v violation) bool { return v.Impact != "serious" && v.Impact != "critical" })
}

// judge fails on what axe calls serious or critical.
func (b *browser) judge(axe, rules, path, mode string) {
	b.t.Helper()
	b.open(path)
	for _, v := range serious(b.violations(axe, rules)) {
		b.t.Errorf("%s (%s): %s %s: %d times, as %+v", path, mode, v.Impact, v.Help, len(v.Nodes), v.Nodes[0])
	}
	b.picture(path, mode)
}

func (b *browser) picture(path, mode string) {
	folder := os.Getenv("CMSJOBS_SCREENSHOTS")
	if folder == "" {
		return
	}
	var picture struct{ Data []byte }
	b.within(func(ctx context.Context) error {
		return b.page.call(ctx, "Page.captureScreenshot",
			map[string]any{"format": "jpeg", "quality": 80, "captureBeyondViewport": true}, &picture)
	})
	name := mode + strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(strings.TrimPrefix(path, "/admin")) +
		".jpg"
	if err := os.WriteFile(filepath.Join(folder, name), picture.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
