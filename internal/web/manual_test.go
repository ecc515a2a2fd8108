package web_test

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/docs"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/manual"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	manualpages "github.com/cmsjobs/cmsjobs/internal/web/feature/manual"
	"github.com/cmsjobs/cmsjobs/internal/web/reference"
)

func theManual(t *testing.T) *manual.Book {
	t.Helper()
	book, err := manual.Read(docs.Files, web.ManualPath)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// TestEveryPageHasItsChapter compares templates, chapters and the manual.
func TestEveryPageHasItsChapter(t *testing.T) {
	book, pages := theManual(t), 0
	for _, f := range feature.All(feature.Ports{}) {
		if f.Files == nil || f.Name == "manual" {
			continue
		}
		found, err := fs.Glob(f.Files, "page_*.html")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			pages++
			name := strings.TrimSuffix(strings.TrimPrefix(file, "page_"), ".html")
			if !book.Has(f.Chapters[name]) {
				t.Errorf("the page %s of %s leads to %q, which the manual does not have", name, f.Name, f.Chapters[name])
			}
		}
		if len(f.Chapters) != len(found) {
			t.Errorf("%s has %d pages and chapters for %d", f.Name, len(found), len(f.Chapters))
		}
	}
	if pages < 25 {
		t.Errorf("only %d pages were found", pages)
	}
	for of, place := range web.CoreChapters() {
		if !book.Has(place) {
			t.Errorf("%s leads to %q, which the manual does not have", of, place)
		}
	}
	for _, name := range conditions.Names() {
		if place := web.ConditionChapter(name); !book.Has(place) {
			t.Errorf("the condition %s leads to %q, which the manual does not have", name, place)
		}
	}
}

// TestEveryChapterIsOnAPath holds the entrance against the documents.
func TestEveryChapterIsOnAPath(t *testing.T) {
	var on []string
	for _, p := range manualpages.Paths() {
		on = append(on, p.Chapters...)
	}
	for _, name := range theManual(t).Names() {
		if !strings.Contains(name, "/") && !slices.Contains(on, name) {
			t.Errorf("%s is on no reader's path", name)
		}
	}
	for _, name := range on {
		if theManual(t).Chapter(name) == nil {
			t.Errorf("there is no chapter %s", name)
		}
	}
}

// TestAnybodyReadsTheManual and nobody learns of the installation by it.
func TestAnybodyReadsTheManual(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.enqueue(`{"type":"mail.send","payload":{"to":"a@b.example"}}`)
	stranger := s.visitor(t)
	stranger.get("/docs").sees("Manual", `href="/docs/install"`, "You keep it running", `href="/admin"`)
	stranger.get("/docs?q=no_worker").sees(`href="/docs/operating#no_worker"`, "<mark>no_worker</mark>")
	stranger.get("/docs?q=mail+xyzzy").sees("has all the words of")
	stranger.get("/docs/backup").sees(`id="restoring"`, `lang="en"`, `href="/docs/admin"`, "On this page")
	stranger.get("/docs/adr/0019-our-own-dumper").sees("dumper")
	for _, page := range []string{"/docs", "/docs/admin", "/docs?q=mail"} {
		stranger.get(page)
		for _, never := range []string{"<footer class=\"foot\"><span>cmsjobs", `class="count`, "Sign out", "/admin/jobs\""} {
			if strings.Contains(stranger.page, never) {
				t.Errorf("%s shows a stranger %q", page, never)
			}
		}
	}
	picture := s.do("GET", "/docs/images/overview.png", nil).want(t, http.StatusOK)
	if got := picture.header.Get("Content-Type"); got != "image/png" || len(picture.body) < 1000 {
		t.Errorf("the picture: %s, %d bytes", got, len(picture.body))
	}
	for _, none := range []string{"/docs/images/embed.go", "/docs/images/..%2f..%2fgo.mod", "/docs/images/%2e%2e"} {
		if a := s.do("GET", none, nil); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", none, a.status)
		}
	}
	stranger.get("/docs/restore")
	if stranger.status != http.StatusNotFound {
		t.Errorf("an unknown chapter: %d", stranger.status)
	}
	stranger.sees2("This chapter is not in the manual")
	stranger.sees2(`href="/docs/backup#`)
	stranger.get("/docs?q=" + strings.Repeat("mail+", 2000)).sees("Search the manual")
	stranger.get(`/docs?q=%3Cscript%3E`)
	if strings.Contains(stranger.page, "<script>") {
		t.Error("the query is markup")
	}
}

// TestPagesLeadToTheManual goes from a page, the sign-in form and refusals to their
// chapters, in both languages.
func TestPagesLeadToTheManual(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.visitor(t).get("/admin/sign-in").sees(`href="/docs/admin#signing-in"`)
	v := s.visitor(t).signIn("admin")
	v.get("/admin/backups").sees(`href="/docs/backup" title="Help for this page"`, `href="/docs"`)
	v.get("/admin/jobs/01900000-0000-7000-8000-000000000000").sees2(`href="/docs/admin#pages"`)
	v.get("/admin/search?q=restore").sees(`href="/docs?q=restore"`)
	v.get("/docs/backup").sees("Sign out")
	v.get("/docs").press(`action="/admin/look"`, "lang", "vi").sees("Tài liệu", "Bạn vận hành dịch vụ")
	if v.at != "/docs" {
		t.Errorf("the choice of a language led to %s", v.at)
	}
	v.get("/docs/backup").sees(`<html lang="vi"`, `class="chapter prose" lang="en"`, "Trên trang này")
}

// TestTheManualBelowABase leads to the same site's pages.
func TestTheManualBelowABase(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { furnished(c); c.Base = "/sites/shop" })
	page := string(s.do("GET", "/docs/backup", nil).want(t, http.StatusOK).body)
	for _, found := range regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(found[1], "/sites/shop/") {
			t.Errorf("the page leads to %s", path.Clean(found[1]))
		}
	}
}

// TestTheAPIsPageNamesEveryCall reads /api/docs as a person does, signed in or not, in
// both languages and below a base.
func TestTheAPIsPageNamesEveryCall(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	page := s.visitor(t).get("/api/docs").page
	for _, r := range allRoutes() {
		if !r.Page && !strings.Contains(page, `<code class="m `+r.Method+`">`+r.Method+`</code><code>`+
			pathParameter.ReplaceAllString(r.Path, "{$1}")+`</code>`) {
			t.Errorf("%s %s is not on the page", r.Method, r.Path)
		}
	}
	for _, field := range []string{"<code>maxRetries</code>", "<code>dry_run</code>", "<code>expires_in</code>",
		`id="schema-mail.send"`, "$TOKEN"} {
		if !strings.Contains(page, field) {
			t.Errorf("the page does not have %s", field)
		}
	}
	for _, found := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+found[1]+`"`) {
			t.Errorf("a link leads to #%s, which is not there", found[1])
		}
	}
	if first, last := strings.Index(page, "/api/v1/jobs<"), strings.Index(page, "/api/admin/jobs<"); first > last {
		t.Error("an older interface stands before ours")
	}
	if strings.Contains(page, "<footer class=\"foot\"><span>cmsjobs") {
		t.Error("the page names the version to a stranger")
	}
	v := s.visitor(t).signIn("viewer").get("/api/docs?q=suppressions").sees("<details class=\"call\"", " open>", "Sign out")
	if strings.Contains(v.page, "/api/v1/workers") {
		t.Error("the search shows what does not fit")
	}
	v.get("/api/docs?q=xyzzy").sees("0 calls and schemas have")
	v.get("/api/docs").press(`action="/admin/look"`, "lang", "vi").sees("Dữ liệu của các loại tác vụ")
	if v.at != "/api/docs" {
		t.Errorf("the choice of a language led to %s", v.at)
	}
}

// TestTheExamplesOfAnEnqueueAreAccepted sends what the API's page shows.
func TestTheExamplesOfAnEnqueueAreAccepted(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	document, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := reference.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, a := range slices.Concat(all.Areas, all.Compat) {
		for _, c := range a.Calls {
			if c.Body != nil && c.Body.Schema == "EnqueueRequest" {
				sent++
				s.admin("POST", c.Path, c.Body.Example).want(t, http.StatusCreated)
			}
		}
	}
	if sent < 2 { // ours and at least one older
		t.Errorf("only %d examples were sent", sent)
	}
}
