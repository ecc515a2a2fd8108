package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// parts are the pages that need nothing in their path.
var parts = []string{"/admin", "/admin?range=7d", "/admin/jobs", "/admin/failed", "/admin/runs", "/admin/batches", "/admin/queues", "/admin/workers",
	"/admin/schedules", "/admin/enqueue", "/admin/backups",
	"/admin/mail", "/admin/media", "/admin/sitemap", "/admin/analytics", "/admin/usage", "/admin/webhooks",
	"/admin/settings", "/admin/tokens", "/admin/audit"}

// TestEveryPageStandsWithAndWithoutItsPorts walks all pages in both languages.
func TestEveryPageStandsWithAndWithoutItsPorts(t *testing.T) {
	for name, changes := range map[string][]func(*config){"bare": {bare}, "furnished": {furnished}} {
		s := newSite(t, jobstest.SQLite, changes...)
		s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example","subject":"fail"}}`)
		s.work()
		s.enqueue(`{"type":"cache.clear"}`)
		v := s.visitor(t).signIn("admin")
		for _, path := range append(parts, "/admin/enqueue?type=mail.send") {
			if name == "bare" && path == "/admin/runs" { // there is no history, and no link to it
				continue
			}
			v.get(path).sees(`<html lang="en"`, "<h1", `aria-current`)
			for _, bad := range []string{"%!", "<no value>", "ZgotmplZ", "style=", "onclick", "javascript:"} {
				if strings.Contains(v.page, bad) {
					t.Errorf("%s, %s holds %q", name, path, bad)
				}
			}
			if name == "bare" &&
				regexp.MustCompile(
					`/admin/(workers|schedules|backups|mail|media|sitemap|analytics|webhooks|settings)$`).MatchString(
					path) {
				v.sees("Not configured")
			}
		}
		v.post("/admin/look", url.Values{"lang": {"vi"}, "theme": {"dark"}, "back": {"/admin/jobs"}}).sees(
			`<html lang="vi" data-theme="dark">`, "Công việc")
		if v.at != "/admin/jobs" {
			t.Errorf("look leads to %s", v.at)
		}
		for _, path := range parts {
			if name == "bare" && path == "/admin/runs" {
				continue
			}
			v.get(path).sees(`<html lang="vi"`)
		}
	}
}

// bare is an installation with jobs and nothing else.
func bare(c *config) { c.History, c.Queues = nil, nil }

func TestVietnameseComesByTheBrowsersWish(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	a := s.do("GET", "/admin/sign-in", nil, header("Accept-Language", "fr, vi-VN;q=0.9, en;q=0.8"))
	if !strings.Contains(string(a.body), `lang="vi"`) || !strings.Contains(string(a.body), "Mật khẩu") {
		t.Errorf("%s", a.body)
	}
}

// TestFormsOfThePartsDoWhatTheySay presses every button of the pages of parts.
func TestFormsOfThePartsDoWhatTheySay(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"cache.clear","delay":600}`)
	v := s.visitor(t).signIn("admin")
	v.get("/admin/queues").press("q-cmsjobs").sees("is paused", "1 job waits in it", "Continue")
	v.press("q-cmsjobs").sees("is active again")
	v.get("/admin/queues").press("x-cmsjobs").sees("1 waiting job will leave its queue").press("sure").sees(
		"1 job cancelled")
	v.get("/admin/workers").sees("host:1:a").press("w-host:1:a").sees("0 workers remain").press("sure").sees(
		"stops when its jobs are done")
	v.get("/admin/workers").press("more-host:1:a").sees("host:1:a will have 3 slots").press(`id="undo"`).sees(
		"as many slots as the order for all workers, or its configuration, says")
	v.get("/admin/workers").press(`id="scale"`, "slots", "7").sees("Each worker will have 7 slots", `value="7"`,
		"As configured").press(`id="undo"`).sees("Each worker will have as many slots as its configuration says")
	v.get("/admin/workers").press(`id="fewer"`).sees("Each worker will have 1 slot at", `value="1"`)
	v.get("/admin/workers").press(`id="scale"`, "slots", "10001").sees2("from 1 to 10000 slots, not 10001")
	v.get("/admin/workers").press(`id="configured"`).sees("as its configuration says")
	v.get("/admin/workers").press(`id="restart"`).sees("1 live worker will finish").press("sure").sees(
		"The workers restart")
	v.get("/admin/schedules").sees("daily at 02:00").press("run-sitemap")
	if !strings.HasPrefix(v.at, "/admin/schedules?job=") {
		t.Errorf("at %s", v.at)
	}
	v.get("/admin/schedules").press("stop-sitemap").sees("is paused", "Paused").press("go-sitemap").sees("is active again")
	v.get("/admin/schedules").sees(`href="/admin/schedules/sitemap">sitemap</a>`)
	v.get("/admin/schedules/sitemap").sees("Last times", `<span class="dim grow num">2026-11-21 12:00`)
	v.get("/admin/schedules/sitemap").press(`id="cron"`, "cron", "never").sees2("cannot be read")
	v.get("/admin/schedules/sitemap").press(`id="cron"`, "cron", "0 3 * * *", "payload", "{}").sees("is changed")
	v.get("/admin/backups").press("d-b.tar.zst").sees("5 B", "Type “delete”").press("sure", "typed", "nope").sees(
		"The text does not match")
	v.press("sure", "typed", "delete").sees("The backup is deleted")
	v.get("/admin/backups").sees("Last verified restore", "40h old", `download`).press("tables-b.tar.zst").sees(
		"<p>Replaces 2 tables of the database cms, with about 50 rows now and 60 in the backup.</p>",
		`<td class="wrap-code">tags</td><td class="wrap-code">not there</td><td class="wrap-code">7</td>`,
		"<p>Creates 2 files and overwrites 3; 0 are the same already.</p>", "the collation differs",
		"A backup of the present state is made first", "Type “cms-database”")
	v.press("sure", "typed", "cms").sees("The text does not match").press("sure", "typed", "cms-database")
	if !strings.HasPrefix(v.at, "/admin/backups?job=") {
		t.Errorf("at %s", v.at)
	}
	if v.get("/admin/backups").press("files-b.tar.zst").sees("Creates 2 files"); strings.Contains(v.page,
		"tables of the database") {
		t.Error("files alone replace tables")
	}
	v.get("/admin/backups/moment").sees("Restore to a moment", `value="2026-11-21T13:00:00"`).press("plan-moment",
		"at", "2026-11-21T12:30:00", "into", "").sees("The moment 2026-11-21 12:30:00 UTC is restored into the database cms",
		"3 transactions of the archived log", "left out is of 2026-11-21 12:01:00 UTC", "2 tables stay without rows",
		"moment-1", "A backup of the present state is made first")
	v.press("sure", "typed", "moment-2").sees("alert")
	v.get("/admin/backups/b.tar.zst/contents?files=uploads/**").sees("uploads/news/a b.jpg", "posts", "left out",
		"/api/v1/backups/b.tar.zst/file?name=uploads%2fnews%2fa%20b.jpg", "3 more")
	v.get("/admin/backups").press(`id="restore-b.tar.zst"`).sees("Overwrites up to 3 files")
	v.get("/admin/mail").press("m-1").sees("once more").press("sure")
	v.get("/admin/mail").press(`id="address"`, "address", "x@y.example").sees("gets no more mail")
	v.get("/admin/mail").press("/admin/suppressions/remove").sees("will get mail again").press("sure").sees(
		"gets mail again")
	v.get("/admin/media").press(`value="all"`).sees("All thumbnails of 3 pictures").press("sure").sees(
		"3 jobs enqueued")
	v.get("/admin/usage").press(`id="dry-cache.clear"`).sees("cache.clear", "Waiting to start")
	v.get("/admin/usage").press(`id="do-cache.clear"`).sees("will be emptied").press("sure").sees("Waiting to start")
	v.get("/admin/webhooks").press(`id="url"`, "url", "https://x.example/hook", "events", "job.failed")
	v.sees("whsec_new")
	v.get("/admin/webhooks").press(`name="enabled"`).sees("The webhook is changed")
	v.press("/admin/webhooks/1/delete").sees("gets no more events").press("sure").sees("The webhook is deleted")
	v.get("/admin/webhooks").press("/admin/deliveries/1/redeliver")
	v.get("/admin/tokens").press(`id="name"`, "name", "shop", "scope", "enqueue", "type", "cache.clear", "life",
		"720h").sees("cmsj_", "shop", "cache.clear")
	secret := regexp.MustCompile(`cmsj_[0-9a-f]{40}`).FindString(v.page)
	s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, bearer(secret)).want(t, 201)
	s.do("POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"a@b"}}`, bearer(secret)).want(t, 403)
	if v.get("/admin/tokens").sees("shop"); strings.Contains(v.page, secret) {
		t.Error("a token is shown twice")
	}
	v.press("/revoke").sees("is refused immediately").press("sure").sees("The token is revoked", "Revoked")
	s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, bearer(secret)).want(t, 401)
	v.get("/admin/tokens").press(`id="name"`, "name", "x", "scope", "root").sees2("No scope is named")
	v.get("/admin/settings").sees("mail.password", "•••")
	v.get("/admin/audit").sees("queues.pause", "backups.delete", "webhooks.delete", "workers.restart", "tokens.create",
		"tokens.revoke", ">Done</", ">Not allowed</")
	if strings.Contains(v.page, "hunter2") || strings.Contains(v.page, "whsec_hidden") {
		t.Error("a secret is shown")
	}
}

// TestAFormOfAnotherSiteDoesNothing sends forms without our token.
func TestAFormOfAnotherSiteDoesNothing(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("admin")
	for _, path := range []string{"/admin/queues/cmsjobs/pause", "/admin/start", "/admin/jobs/bulk",
		"/admin/sign-out"} {
		if v.post(path, url.Values{"sure": {"yes"}, "type": {"cache.clear"}}); v.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, v.status)
		}
	}
}

const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'</textarea>{{.}}`

// TestNothingOfAPayloadBecomesMarkup puts markup into every field that comes
// from outside and looks for it on each page.
func TestNothingOfAPayloadBecomesMarkup(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, hostile)
	quoted := strings.ReplaceAll(evil, `"`, `\"`)
	// A request cannot name such a queue and field any more, a row can.
	both := []byte(`{"` + quoted + `":"` + quoted + `"}`)
	receipts, err := s.Enqueue(t.Context(), jobs.Spec{Type: "cache.clear", Queue: "odd", Data: both, Metadata: both,
		Delay: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	waiting := receipts[0].UUID
	s.db.MustExec("UPDATE jobs SET queue = 'q<b>' || char(39) WHERE queue = 'odd'")
	failing := s.enqueue(`{"type":"mail.send","payload":{"to":"@` + quoted + `","subject":"fail","body":"` + quoted +
		`"}}`)
	// its result and its log line have it too
	done := s.enqueue(`{"type":"mail.send","payload":{"to":"@` + quoted + `"}}`)
	s.work()
	v := s.visitor(t).signIn("admin")
	v.press("/admin/look", "lang", evil, "theme", evil, "back", "/admin?"+url.QueryEscape(evil))
	paths := append(parts, "/admin/jobs/"+waiting, "/admin/jobs/"+failing, "/admin/jobs/"+done, "/admin/jobs/"+failing+
		"/edit", "/admin/mail/1", "/admin/schedules/sitemap")
	for _, field := range []string{"text", "type", "queue", "status", "since", "until", "cause", "cursor", "range",
		"job", "status", "actor", "action", "target", "type"} {
		for _, path := range []string{"/admin", "/admin/jobs", "/admin/failed", "/admin/mail", "/admin/audit",
			"/admin/enqueue", "/admin/analytics"} {
			paths = append(paths, path+"?"+field+"="+url.QueryEscape(evil))
		}
	}
	for _, path := range paths {
		v.get(path)
		if v.status >= 500 {
			t.Errorf("%s: %d", path, v.status)
		}
		for _, bad := range []string{"<script>alert", "<img src=x", "<b>'", "onerror=alert(2)>'</textarea>"} {
			if strings.Contains(v.page, bad) {
				t.Errorf("%s lets %q through", path, bad)
			}
		}
	}
	v.post("/admin/sign-in", url.Values{"name": {evil}, "password": {"x"}, "next": {"javascript:" + evil}})
	if strings.Contains(v.page, "<script>alert") {
		t.Error("the sign-in form lets markup through")
	}
	for _, path := range []string{"/admin/mail/1/preview", "/admin/mail/templates/body?name=welcome"} {
		a := s.admin("GET", path, nil).want(t, 200)
		if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") ||
			!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
			t.Errorf("%s: the preview's policy is %q", path, policy)
		}
	}
}

func TestAJobThatWaitsForWhatIsOutSaysSo(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"mail.send","delay":60,"payload":{"to":"a@b.example"}}`)
	s.visitor(t).signIn("viewer").get("/admin/jobs?status=queued").sees("“smtp” is unreachable; its jobs wait until " +
		"it responds.")
}

func TestMailTemplatesAreShownFilledIn(t *testing.T) {
	newSite(t, jobstest.SQLite, bare).visitor(t).signIn("viewer").get("/admin/mail/templates").sees("Not configured")
	s := newSite(t, jobstest.SQLite, furnished)
	v := s.visitor(t).signIn("viewer")
	v.get("/admin/mail").sees(`href="/admin/mail/templates"`)
	v.get("/admin/mail/templates").sees("welcome", "Shipped", "promo", "Yours", "name=promo&amp;locale=vi",
		"name=cms%3aplugins%2fcontact%2fnotice", "The CMS")
	v.get("/admin/mail/templates?name=welcome&locale=vi").sees("Welcome vi", "Hello Ann", `sandbox=""`,
		`src="/admin/mail/templates/body?locale=vi&amp;name=welcome"`, `&#34;name&#34;: &#34;Ann&#34;`)
	if strings.Contains(v.page, "<h1>Hello</h1>") {
		t.Error("the mail's own markup stands in our page")
	}
	v.get("/admin/mail/templates/body?name=welcome").sees("<h1>Hello</h1>")
	v.get("/admin/mail/templates?name=promo").sees("line 3 cannot be read")
	if v.get("/admin/mail/templates?name=nothing"); v.status != http.StatusNotFound {
		t.Errorf("a template that is not there: %d", v.status)
	}
}
