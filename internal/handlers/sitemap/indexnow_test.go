package sitemap_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

const testKey = "5f0c2e9a-77aa-4a44-9d4e-0123456789ab"

// engine is a search engine and, at the same address, the site whose key file
// it would fetch.
type engine struct {
	*httptest.Server
	site *cms.Site

	mu     sync.Mutex
	bodies []string
	types  []string
	// answer decides what submission n (from 1) gets; 202 when nil.
	answer func(n int, w http.ResponseWriter)
	noKey  bool
}

func newEngine(t *testing.T, site *cms.Site) *engine {
	t.Helper()
	e := &engine{site: site}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	site.Env["APP_URL"] = e.URL
	insert(t, site, "settings", 100, "indexnow_enabled", "1")
	insert(t, site, "settings", 101, "indexnow_api_key", testKey)
	return e
}

func (e *engine) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if e.noKey {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(e.site.Public(), filepath.Base(r.URL.Path)))
		return
	}
	text, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.bodies, e.types = append(e.bodies, string(text)), append(e.types, r.Header.Get("Content-Type"))
	n := len(e.bodies)
	e.mu.Unlock()
	if e.answer != nil {
		e.answer(n, w)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// submissions returns and forgets the bodies so far.
func (e *engine) submissions() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.bodies
	e.bodies = nil
	return list
}

// teller is a Handler that may talk to loopback.
func teller(t *testing.T, site *cms.Site, e *engine, change func(*sitemap.IndexNowOptions)) *sitemap.Handler {
	t.Helper()
	return handler(t, site, func(c *sitemap.Config) {
		c.IndexNow = sitemap.IndexNowOptions{Endpoints: []string{e.URL + "/indexnow"}, WriteKey: true}
		if change != nil {
			change(&c.IndexNow)
		}
		c.HTTP = outbound.New(outbound.Options{AllowHTTP: true, AllowPrivate: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8")}})
	})
}

func submit(t *testing.T, h *sitemap.Handler, p sitemap.IndexNowPayload) sitemap.Submission {
	t.Helper()
	s, err := h.Submit(t.Context(), p)
	if err != nil {
		t.Fatalf("submitting: %v", err)
	}
	return s
}

// bodyOf writes the body by hand, as indexnow.org/documentation shows it.
func bodyOf(e *engine, urls ...string) string {
	list, _ := json.Marshal(urls)
	host := strings.TrimPrefix(e.URL, "http://")
	return fmt.Sprintf(`{"host":%q,"key":%q,"keyLocation":"%s/%s.txt","urlList":%s}`, host, testKey, e.URL, testKey,
		list)
}

func TestIndexNowGetsExactlyWhatChanged(t *testing.T) {
	for _, database := range jobstest.Engines() {
		t.Run(string(database), func(t *testing.T) {
			site := plainCMS(t, database, "bigint")
			blog(t, site)
			e := newEngine(t, site)
			h := teller(t, site, e, nil)

			s := submit(t, h, sitemap.IndexNowPayload{})
			want := []string{
				bodyOf(e, e.URL, e.URL+"/about.html", e.URL+"/blog/2026/one.html", e.URL+"/%C3%BCber%20uns.html",
					e.URL+"/world&co.html")}
			if got := e.submissions(); !slices.Equal(got, want) {
				t.Errorf("the first submission:\ngot  %s\nwant %s", got, want)
			}
			if s.Added != 5 || s.Calls != 1 || s.KeyFile != "written" ||
				e.types[0] != "application/json; charset=utf-8" {
				t.Errorf("%+v, %v", s, e.types)
			}
			if key, err := os.ReadFile(filepath.Join(site.Public(), testKey+".txt")); err != nil ||
				string(key) != testKey {
				t.Errorf("key file %q, %v", key, err)
			}

			if s := submit(t, h, sitemap.IndexNowPayload{}); s.Why == "" || len(e.submissions()) != 0 {
				t.Errorf("nothing changed, yet %+v", s)
			}
			wantChanges(t, h, 10) // what was there before the first look has not changed

			site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-19 00:00:00' WHERE id = 1") // changed
			site.DB.MustExec("UPDATE posts SET status = 'published' WHERE id = 4")               // added
			site.DB.MustExec("UPDATE categories SET status = 'draft'")                           // deleted
			s = submit(t, h, sitemap.IndexNowPayload{})
			body := bodyOf(e, e.URL+"/blog/2026/one.html", e.URL+"/blog/pending.html", e.URL+"/world&co.html")
			if got := e.submissions(); !slices.Equal(got, []string{body}) || s.Added != 1 || s.Changed != 1 ||
				s.Deleted != 1 {
				t.Errorf("changes: %+v\ngot  %s\nwant %s", s, got, body)
			}
			wantChanges(t, h, 10, e.URL+"/blog/2026/one.html", e.URL+"/blog/pending.html", e.URL+"/world&co.html")
			wantChanges(t, h, 10)
			wantRows(t, h, site)
			site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-19 00:00:01' WHERE id IN (1, 4)")
			if c, err := h.ChangesToPurge(t.Context(), 1); err != nil || !c.More {
				t.Errorf("two changes, one asked for: %+v, %v", c, err)
			} else if err := h.NoteChanges(t.Context(), c); err != nil {
				t.Error(err)
			}
			wantChanges(t, h, 10)
		})
	}
}

// wantRows looks at single rows: only those that are public and changed count, and what
// was noted of them has not changed for the comparison of the site either.
func wantRows(t *testing.T, h *sitemap.Handler, site *cms.Site) {
	t.Helper()
	one := site.URL() + "/blog/2026/one.html"
	site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-18 00:00:01' WHERE id IN (1, 4)")
	for _, x := range []struct {
		rows []string
		want []string
	}{
		{[]string{"other:1", "posts:1x", "posts:999999", "categories:1", "pages:x"}, nil}, // a draft by now, and no rows
		{[]string{"posts:1", "posts:1", "other:4"}, []string{one}},
		{[]string{"posts:1"}, nil},
	} {
		c, err := h.ChangesOfRows(t.Context(), x.rows)
		if err == nil {
			err = h.NoteChanges(t.Context(), c)
		}
		if err != nil || !slices.Equal(c.URLs, x.want) {
			t.Errorf("of %v changed %v, %v; want %v", x.rows, c.URLs, err, x.want)
		}
	}
	wantChanges(t, h, 10, site.URL()+"/blog/pending.html")
}

// Where no map is made, the content is compared with what was noted for caches. With a
// post go the pages that list it.
func TestASiteWithoutAMap(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			site := plainCMS(t, engine, "bigint")
			blog(t, site)
			site.DB.MustExec("CREATE TABLE post_categories (category_id BIGINT, post_id BIGINT)")
			site.DB.MustExec("CREATE TABLE post_tags (tag_id BIGINT, post_id BIGINT)")
			site.DB.MustExec("INSERT INTO post_categories SELECT id, 1 FROM categories")
			site.DB.MustExec("INSERT INTO post_tags VALUES (77, 1)") // there is none such
			// The category is below another, and the second is its own parent's parent, as no CMS allows.
			insert(t, site, "categories", 2, "Above", "published", before, before)
			site.DB.MustExec("ALTER TABLE categories ADD parent_id BIGINT")
			site.DB.MustExec("UPDATE categories SET parent_id = 3 - id")
			insert(t, site, "slugs", 90, "above", 2, categoryClass, "")
			insert(t, site, "settings", 90, "theme-ripple-blog_page_id", "2")
			site.DB.MustExec("ALTER TABLE posts ADD author_id BIGINT")
			site.DB.MustExec("ALTER TABLE posts ADD author_type VARCHAR(255)")
			site.DB.MustExec(site.DB.Rebind("UPDATE posts SET author_id = 7, author_type = ?"), `Botble\Member\Models\Member`)
			insert(t, site, "slugs", 91, "ann", 7, `Botble\Member\Models\Member`, "author")
			insert(t, site, "slugs", 92, "bob", 8, `Botble\Member\Models\Member`, "author")
			h := teller(t, site, newEngine(t, site), nil)
			compare := func(what string, want bool) {
				t.Helper()
				if s, err := h.Compare(t.Context()); err != nil || s.Listed || s.Outdated != want {
					t.Errorf("%s: %+v, %v", what, s, err)
				}
			}
			compare("at first", true)
			wantChanges(t, h, 10)
			compare("when it was noted", false)
			site.DB.MustExec("UPDATE posts SET updated_at = '2026-11-19 00:00:00' WHERE id = 1")
			compare("after an edit", true)
			one, list := []string{site.URL() + "/blog/2026/one.html"}, []string{site.URL() + "/about.html",
				site.URL() + "/world&co.html", site.URL() + "/above.html", site.URL() + "/author/ann.html"}
			for _, rows := range [][]string{nil, {"posts:1"}} {
				c, err := h.ChangesToPurge(t.Context(), 10)
				if rows != nil {
					c, err = h.ChangesOfRows(t.Context(), rows)
				}
				if err != nil || c.More || !slices.Equal(c.URLs, one) || !slices.Equal(c.Lists, list) {
					t.Errorf("of %v: %+v, %v", rows, c, err)
				}
			}
			wantChanges(t, h, 10, one...)
			compare("when that was noted", false)
		})
	}
}

// wantChanges asks what caches must hear of, twice: until it is noted, it stays.
func wantChanges(t *testing.T, h *sitemap.Handler, most int, want ...string) {
	t.Helper()
	for range 2 {
		c, err := h.ChangesToPurge(t.Context(), most)
		if err != nil || c.More || !slices.Equal(c.URLs, want) {
			t.Errorf("changed: %v, more %v, %v; want %v", c.URLs, c.More, err, want)
		}
	}
	c, err := h.ChangesToPurge(t.Context(), most)
	if err == nil {
		err = h.NoteChanges(t.Context(), c)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestIndexNowIsOffUnlessItIsOn(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	h := teller(t, site, e, nil)
	for _, off := range []string{
		"DELETE FROM settings WHERE id = 100", "INSERT INTO settings VALUES (100, 'indexnow_enabled', '0')",
		"UPDATE settings SET value = '1' WHERE id = 100; UPDATE settings SET value = '' WHERE id = 101",
		"UPDATE settings SET value = 'abcdefgh' WHERE id = 101; INSERT INTO settings VALUES (102, 'sitemap_enabled', " +
			"'0')",
	} {
		site.DB.MustExec(off)
		if s := submit(t, h, sitemap.IndexNowPayload{}); s.Why == "" {
			t.Errorf("after %q: %+v", off, s)
		}
	}
	if n := len(e.submissions()); n != 0 {
		t.Errorf("%d submissions", n)
	}
}

func TestIndexNowBatchesAndResumes(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	h := teller(t, site, e, func(o *sitemap.IndexNowOptions) { o.Batch = 2 })
	e.answer = func(n int, w http.ResponseWriter) {
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	if _, err := h.Submit(t.Context(), sitemap.IndexNowPayload{}); err == nil || jobs.IsPermanent(err) {
		t.Fatalf("503 must be retried, got %v", err)
	}
	first := e.submissions()
	e.answer = nil
	s := submit(t, h, sitemap.IndexNowPayload{})
	second := e.submissions()
	if len(first) != 2 || len(second) != 2 || s.Added != 3 {
		t.Fatalf("%d and %d calls, %+v", len(first), len(second), s)
	}
	if first[1] != second[0] || first[0] == second[0] {
		t.Errorf("what was accepted is not sent again, what was not is:\n%s\n%s", first, second)
	}
}

func TestIndexNowAnswers(t *testing.T) {
	for _, c := range []struct {
		code      int
		permanent bool
		wait      time.Duration
		says      string
		header    string
	}{
		{400, true, 0, "does not understand", ""},
		{403, true, 0, "does not accept the key", ""},
		{422, true, 0, "APP_URL", ""},
		{404, true, 0, "check the endpoint", ""},
		{301, true, 0, "configure the endpoint", ""},
		{429, false, 7 * time.Second, "too many", "7"},
		{429, false, time.Minute, "too many", ""},
		{429, false, 90 * time.Second, "too many", noon.Add(90 * time.Second).Format(http.TimeFormat)},
		{429, false, 24 * time.Hour, "too many", "99999999999"},
		{500, false, 0, "500", ""},
		{503, false, 0, "503", ""},
	} {
		t.Run(fmt.Sprint(c.code, c.header), func(t *testing.T) {
			site := plainCMS(t, jobstest.SQLite, "bigint")
			blog(t, site)
			e := newEngine(t, site)
			e.answer = func(_ int, w http.ResponseWriter) {
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.Header().Set("Location", "https://elsewhere.example/")
				w.WriteHeader(c.code)
				io.WriteString(w, "no "+testKey)
			}
			s, err := teller(t, site, e, nil).Submit(t.Context(), sitemap.IndexNowPayload{})
			if err == nil || jobs.IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v (permanent %v)", err, jobs.IsPermanent(err))
			}
			if wait, _ := jobs.AsRetryAfter(err); wait != c.wait {
				t.Errorf("waits %v, want %v", wait, c.wait)
			}
			if text := fmt.Sprint(err, s.Refusals); strings.Contains(text, testKey) {
				t.Errorf("the key is in a message: %s", text)
			}
			most := 1 // redirects are not followed
			if c.code == 400 || c.code == 422 {
				most = 5 // five addresses, halved until two were refused alone
			}
			if n := len(e.submissions()); n != most {
				t.Errorf("%d submissions, want %d", n, most)
			}
		})
	}
}

func TestIndexNowNetworkErrorsRetryAndPrivateAddressesDoNot(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	h := teller(t, site, e, func(o *sitemap.IndexNowOptions) { o.Endpoints = []string{"http://127.0.0.1:1/indexnow"} })
	if _, err := h.Submit(t.Context(), sitemap.IndexNowPayload{}); err == nil || jobs.IsPermanent(err) {
		t.Errorf("a refused connection must be retried: %v", err)
	}
	strict := handler(t, site, func(c *sitemap.Config) {
		c.IndexNow = sitemap.IndexNowOptions{Endpoints: []string{e.URL}, WriteKey: true}
	})
	_, err := strict.Submit(t.Context(), sitemap.IndexNowPayload{})
	if !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "no public address") || len(e.submissions()) != 0 {
		t.Errorf("an endpoint on loopback must be refused: %v", err)
	}
}

func TestIndexNowOneOfSeveralIsEnough(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	h := teller(t, site, e, func(o *sitemap.IndexNowOptions) { o.Endpoints = []string{e.URL + "/a", e.URL + "/b"} })
	e.answer = func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusForbidden)
		}
	}
	if s := submit(t, h, sitemap.IndexNowPayload{}); len(s.Refusals) != 1 || len(e.submissions()) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestIndexNowKeyFile(t *testing.T) {
	prepare := func(t *testing.T) (*cms.Site, *engine, string) {
		site := plainCMS(t, jobstest.SQLite, "bigint")
		blog(t, site)
		e := newEngine(t, site)
		return site, e, filepath.Join(site.Public(), testKey+".txt")
	}
	t.Run("missing and not allowed to write", func(t *testing.T) {
		site, e, _ := prepare(t)
		_, err := teller(t, site, e, func(o *sitemap.IndexNowOptions) { o.WriteKey = false }).Submit(t.Context(),
			sitemap.IndexNowPayload{})
		if !jobs.IsPermanent(err) || !strings.Contains(err.Error(), "public folder") || len(e.submissions()) != 0 {
			t.Error(err)
		}
	})
	t.Run("holds something else", func(t *testing.T) {
		site, e, path := prepare(t)
		if err := os.WriteFile(path, []byte("another"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := teller(t, site, e, nil).Submit(t.Context(), sitemap.IndexNowPayload{}); !jobs.IsPermanent(err) ||
			len(e.submissions()) != 0 {
			t.Error(err)
		}
	})
	t.Run("on the disk, but the web server does not show it", func(t *testing.T) {
		site, e, _ := prepare(t)
		e.noKey = true
		if _, err := teller(t, site, e, nil).Submit(t.Context(), sitemap.IndexNowPayload{}); !jobs.IsPermanent(err) ||
			len(e.submissions()) != 0 {
			t.Error(err)
		}
	})
	t.Run("a key that is a path", func(t *testing.T) {
		site, e, _ := prepare(t)
		site.DB.MustExec("UPDATE settings SET value = '../../etc/passwd' WHERE id = 101")
		if _, err := teller(t, site, e, nil).Submit(t.Context(), sitemap.IndexNowPayload{}); !jobs.IsPermanent(err) ||
			len(e.submissions()) != 0 {
			t.Error(err)
		}
	})
}

func TestIndexNowModes(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	h := teller(t, site, e, nil)
	given := e.URL + "/vi/sitemap.xml"
	foreign := "https://elsewhere.example/sitemap.xml"
	submit(t, h, sitemap.IndexNowPayload{Mode: sitemap.ModeSitemap})
	if got := e.submissions(); !slices.Equal(got, []string{bodyOf(e, e.URL+"/sitemap.xml")}) {
		t.Errorf("sitemap: %s", got)
	}
	submit(t, h, sitemap.IndexNowPayload{SitemapURL: &given})
	if got := e.submissions(); len(got) != 2 || got[0] != bodyOf(e, given) || !strings.Contains(got[1], "about.html") {
		t.Errorf("sitemapUrl: %s", got)
	}
	if _, err := h.Submit(t.Context(), sitemap.IndexNowPayload{SitemapURL: &foreign}); !jobs.IsPermanent(err) ||
		len(e.submissions()) != 0 {
		t.Errorf("a foreign sitemap: %v", err)
	}
}

// run executes a job as the worker does and returns what it left.
func run(t *testing.T, h *sitemap.Handler, j jobs.Job) (json.RawMessage, []jobs.Spec, error) {
	t.Helper()
	registry := jobs.NewRegistry()
	h.Register(registry)
	entry, ok := registry.Lookup(j.Type)
	if !ok {
		t.Fatalf("no handler for %s", j.Type)
	}
	r := jobs.NewRun(func() time.Time { return noon })
	err := entry.Run(jobs.WithRun(t.Context(), r), j)
	result, next := r.Result()
	return result, next, err
}

func TestTheJobLeadsToIndexNowAndTellsOfItself(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	var events []sitemap.Event
	h := handler(t, site, func(c *sitemap.Config) {
		c.Updated = func(_ context.Context, e sitemap.Event) error { events = append(events, e); return nil }
	})
	job := jobs.Job{Type: "sitemap.generate", Data: json.RawMessage(`{"force":false}`), Attempt: 1, MaxAttempts: 3}
	result, next, err := run(t, h, job)
	if err != nil || len(next) != 1 || next[0].Type != "sitemap.indexnow" || next[0].Delay != 0 ||
		string(next[0].Data) != `{"sitemapUrl":null}` {
		t.Fatalf("%v, follow-ups %+v", err, next)
	}
	if len(events) != 1 || events[0].URL != "https://cms.example/sitemap.xml" || events[0].URLs != 5 ||
		!strings.Contains(string(result), `"urls":5`) {
		t.Errorf("events %+v, result %s", events, result)
	}
	if result, next, err := run(t, h, job); err != nil || len(next) != 0 || len(events) != 1 ||
		!strings.Contains(string(result), "nothing changed since") {
		t.Errorf("unchanged: %v, %v, %s", err, next, result)
	}
	// An earlier attempt may have died between writing the map and being completed.
	job.Attempt = 2
	if _, next, err := run(t, h, job); err != nil || len(next) != 1 || len(events) != 2 {
		t.Errorf("a later attempt must tell: %v, %v", err, next)
	}
}

// strict makes the engine answer as the protocol says: 422 where an address is
// not of the host, or is refused.
func (e *engine) strict(refused ...string) {
	e.answer = func(n int, w http.ResponseWriter) {
		var b struct {
			Host    string   `json:"host"`
			URLList []string `json:"urlList"`
		}
		e.mu.Lock()
		text := e.bodies[n-1]
		e.mu.Unlock()
		_ = json.Unmarshal([]byte(text), &b)
		for _, u := range b.URLList {
			if !strings.HasPrefix(u, "http://"+b.Host) || slices.ContainsFunc(refused, func(r string) bool {
				return strings.HasSuffix(u, r)
			}) {
				http.Error(w, "Unprocessable", http.StatusUnprocessableEntity)
				return
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestASiteThatMovedIsSubmittedUnderItsNewHost(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	e.strict()
	h := teller(t, site, e, nil)
	submit(t, h, sitemap.IndexNowPayload{})
	e.submissions()

	site.Env["APP_URL"] = strings.Replace(e.URL, "127.0.0.1", "localhost", 1)
	h = teller(t, site, e, nil)
	s := submit(t, h, sitemap.IndexNowPayload{})
	if s.Added != 5 || s.Deleted != 0 || s.Forgotten != 5 || s.Calls != 1 {
		t.Errorf("%+v", s)
	}
	if got := e.submissions(); len(got) != 1 || strings.Contains(got[0], "127.0.0.1") {
		t.Errorf("submitted %s", got)
	}
	site.DB.MustExec("UPDATE posts SET status = 'published' WHERE id = 4")
	if s := submit(t, h, sitemap.IndexNowPayload{}); s.Added != 1 || s.Forgotten != 0 {
		t.Errorf("the next change: %+v", s)
	}
}

func TestOneRefusedAddressDoesNotHoldUpTheOthers(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	e.strict("/about.html")
	h := teller(t, site, e, nil)
	s := submit(t, h, sitemap.IndexNowPayload{})
	if s.Refused != 1 || len(s.Refusals) != 2 || !strings.Contains(s.Refusals[1], "/about.html") || s.Calls > 7 {
		t.Errorf("%+v", s)
	}
	e.submissions()
	site.DB.MustExec("UPDATE posts SET status = 'published' WHERE id = 4")
	// the refused one is not tried again
	if s := submit(t, h, sitemap.IndexNowPayload{}); s.Added != 1 || s.Calls != 1 {
		t.Errorf("the next change: %+v", s)
	}
}

func TestACallThatIsRefusedForItsKeyIsMadeOnce(t *testing.T) {
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	e := newEngine(t, site)
	e.answer = func(_ int, w http.ResponseWriter) { http.Error(w, "no", http.StatusForbidden) }
	h := teller(t, site, e, nil)
	if _, err := h.Submit(t.Context(), sitemap.IndexNowPayload{}); !jobs.IsPermanent(err) {
		t.Errorf("%v", err)
	}
	if got := e.submissions(); len(got) != 1 {
		t.Errorf("%d calls", len(got))
	}
	e.answer = func(_ int, w http.ResponseWriter) { http.Error(w, "no", http.StatusUnprocessableEntity) }
	if _, err := h.Submit(t.Context(), sitemap.IndexNowPayload{}); !jobs.IsPermanent(err) {
		t.Errorf("%v", err)
	}
	if got := e.submissions(); len(got) > 8 { // five addresses, halved
		t.Errorf("%d calls where everything is refused", len(got))
	}
}
