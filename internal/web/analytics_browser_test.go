package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
)

// Each click on a row adds a filter, and its cross takes it away again.
func TestFiltersOfVisitsAreClickedTogether(t *testing.T) {
	var asked analytics.AnalyticsQuery
	s := newSite(t, jobstest.SQLite, func(c *config) { c.Parts = feature.Ports{Analytics: visits{asked: &asked}} })
	b := newBrowser(t, s)
	b.signIn("operator")
	for _, width := range []int{1280, 390} {
		b.width(width)
		b.open("/admin/analytics?range=30")
		b.press(`section[aria-labelledby="d-goal"] tbody a`)
		b.until(`document.querySelectorAll("#filter .tok").length === 1`)
		b.press(`section[aria-labelledby="d-channel"] tbody a`)
		b.until(`document.querySelectorAll("#filter .tok").length === 2`)
		b.sees("Order")
		b.sees("Search")
		b.noOverflow("filters of visits", width)
		b.press("#filter .tok a")
		b.until(`location.search.includes("channel%3Asearch") && !location.search.includes("goal") &&
			document.querySelectorAll("#filter .tok").length === 1`)
		b.press("#f-visits")
		b.until(`document.querySelectorAll("#filter .tok").length === 1 && location.search.includes("figure=visits")`)
		b.press("#filter .btn")
		b.until(`document.querySelector("#filter") === null`)
	}
	b.quietConsole()
}

// The script of /collect.js sends the view, events that were called before it had loaded,
// and later ones.
func TestTheScriptSendsEvents(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "handlers", "analytics", "collect.js"))
	if err != nil {
		t.Fatal(err)
	}
	type hit struct {
		URL   string `json:"u"`
		Event string `json:"n"`
	}
	hits := make(chan hit, 10)
	var base string
	b := newBrowserAt(t, func() string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/collect.js":
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write(script)
			case "/collect":
				var h hit
				body, err := io.ReadAll(r.Body)
				if err == nil {
					err = json.Unmarshal(body, &h)
				}
				if err != nil {
					t.Errorf("%q: %v", body, err)
				}
				hits <- h
				w.WriteHeader(http.StatusNoContent)
			case "/news":
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><script>
Object.defineProperty(navigator, 'webdriver', { get: () => false }); // the script leaves programs out
window.cmsjobs = window.cmsjobs || function () { (cmsjobs.q = cmsjobs.q || []).push(arguments) };
cmsjobs('Early');</script><script defer src="/collect.js"></script>
<main><button onclick="cmsjobs('Signup')">Sign up</button></main>`)
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		base = server.URL
		return base
	})
	b.open("/news?utm_term=a#part")
	want := map[string]bool{"": true, "Early": true, "Signup": true}
	for i := range 3 {
		if i == 2 {
			b.click("button")
		}
		var got hit
		select {
		case got = <-hits:
		case <-time.After(patience):
			t.Fatalf("nothing was sent; %v are missing", want)
		}
		if !want[got.Event] || got.URL != base+"/news?utm_term=a" {
			t.Errorf("%+v was sent", got)
		}
		delete(want, got.Event)
	}
	b.quietConsole()
}
