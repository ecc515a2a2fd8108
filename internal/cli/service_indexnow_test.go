package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sitemappage "github.com/cmsjobs/cmsjobs/internal/web/feature/sitemap"
)

// toldEngine is a search engine that answers with a status, and, at the same
// address, the site in a folder, whose key file the engine would fetch.
func toldEngine(t *testing.T, public string, status *atomic.Int32) string {
	t.Helper()
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.ServeFile(w, r, filepath.Join(public, filepath.Base(r.URL.Path)))
			return
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(e.Close)
	return e.URL
}

// moveSite gives the site in a folder another address.
func moveSite(t *testing.T, dir, address string) {
	t.Helper()
	file := filepath.Join(dir, ".env")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(string(text), "APP_URL=https://demo.example", "APP_URL="+address, 1)
	if moved == string(text) {
		t.Fatalf("the sample's .env has no address: %s", text)
	}
	if err := os.WriteFile(file, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTheSitemapPageTellsWhatSearchEnginesWereTold runs sitemap.indexnow with
// every kind of end and reads the history in the API and on the page: nothing
// sent and why, accepted with the number of addresses, refused with the reason.
func TestTheSitemapPageTellsWhatSearchEnginesWereTold(t *testing.T) {
	t.Parallel()
	const key = "5f0c2e9a-77aa-4a44-9d4e-0123456789ab"
	dir, db := sampleSite(t)
	var status atomic.Int32
	engine := toldEngine(t, filepath.Join(dir, "public"), &status)
	moveSite(t, dir, engine)
	config := fmt.Sprintf("queue: {worker: false}\nschedule: {enabled: false}\nindexnow: {endpoints: [%q]}\nwebhook: "+
		"{allow_private: [127.0.0.0/8]}\n", engine+"/indexnow")
	s := newService(t, config, "--cms="+dir)
	tell := func(answer int) {
		t.Helper()
		status.Store(int32(answer))
		s.command("enqueue", "sitemap.indexnow", "{}", "--max-attempts", "1")
		s.command("work", "--stop-when-empty")
	}
	tell(500) // off: nobody is asked
	db.MustExec("INSERT INTO settings (key, value) VALUES ('indexnow_enabled', '1'), ('indexnow_api_key', '" + key +
		"')")
	tell(202)
	tell(500) // nothing changed: nobody is asked
	db.MustExec("DELETE FROM posts WHERE id > 50")
	tell(403)
	s.start()

	var seen sitemappage.SitemapStatus
	s.ask(200, "GET", "/api/v1/sitemap", "", bearer(s.token("read")), &seen)
	host := strings.TrimPrefix(engine, "http://")
	want := []struct { // newest first
		status int
		failed bool
		some   bool // addresses
		note   string
	}{{0, true, false, "403"}, {0, false, false, "nothing changed since"}, {202, false, true, ""},
		{0, false, false, "indexnow_enabled is off"}}
	if len(seen.Submissions) < len(want) { // behind them are those of the sample site's past
		t.Fatalf("%+v", seen.Submissions)
	}
	for i, w := range want {
		x := seen.Submissions[i]
		if x.Status != w.status || x.Failed != w.failed || x.URLs > 0 != w.some || !strings.Contains(x.Note, w.note) ||
			x.Host != host || x.At.IsZero() {
			t.Errorf("%d: %+v, want %+v", i, x, w)
		}
	}
	page, text := s.try("GET", "/admin/sitemap", "", bearer(s.token("read")))
	for _, must := range []string{host, "nothing changed since", "indexnow_enabled is off", "403", "Nothing sent",
		`</svg>202</span>`, `</svg>Failed</span>`} {
		if !strings.Contains(string(text), must) {
			t.Errorf("%d: %q is not on the page:\n%s", page, must, text)
		}
	}
	if strings.Contains(string(text), key) {
		t.Error("the page shows the key")
	}
}
