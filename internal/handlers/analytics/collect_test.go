package analytics

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
	"github.com/cmsjobs/cmsjobs/templates"
)

func send(c *Collector, body string, change func(*http.Request)) int {
	r := httptest.NewRequest(http.MethodPost, "/collect", strings.NewReader(body))
	r.RemoteAddr = "203.0.113.7:1234"
	r.Header.Set("User-Agent", firefox)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Code
}

func TestTheCollectorTakesWhatItShouldAndNoMore(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	h.RespectDoNotTrack = true
	c := h.NewCollector()
	page := `{"u":"https://www.example.com/a?utm_source=n","r":"https://t.co/x"}`
	for name, x := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"a view":       {page, nil, 204},
		"another host": {`{"u":"https://evil.example/a"}`, nil, 403},
		"no JSON":      {`<xml>`, nil, 400},
		"no address":   {`{"u":"/a"}`, nil, 400},
		"too long":     {`{"u":"` + strings.Repeat("x", 5000) + `"}`, nil, 413},
		"do not track": {page, func(r *http.Request) { r.Header.Set("DNT", "1") }, 204},
		"GPC":          {page, func(r *http.Request) { r.Header.Set("Sec-GPC", "1") }, 204},
		"a GET":        {"", func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"a bot": {
			page, func(r *http.Request) {
				r.Header.Set("User-Agent", "Googlebot/2.1 (+http://www.google.com/bot.html)")
			}, 204},
		"a prefetch":    {page, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") }, 204},
		"referrer spam": {`{"u":"https://example.com/a","r":"https://www.semalt.com/x"}`, nil, 204},
	} {
		if got := send(c, x.body, x.change); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
	if err := c.last(nil); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	rows, err := h.DB.Query("SELECT kind, site, path, referrer, campaign, browser FROM cmsjobs_page_views")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var kind, site, path, referrer, campaign, browser string
		if err := rows.Scan(&kind, &site, &path, &referrer, &campaign, &browser); err != nil {
			t.Fatal(err)
		}
		kinds[kind]++
		if kind == kindView && (site != "example.com" || path != "/a" || referrer != "X" || campaign != "n" ||
			browser != "Firefox") {
			t.Errorf("stored as %s %s %s %s %s", site, path, referrer, campaign, browser)
		}
	}
	if kinds[kindView] != 1 || kinds[kindBot] != 2 || kinds[kindSpam] != 1 {
		t.Errorf("stored %v", kinds)
	}
}

func TestOnlyAServerWithTheKeySpeaksForVisitors(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	h.RespectDoNotTrack = true
	c := h.NewCollector()
	const key = "0123456789abcdef01234567"
	view := `{"u":"https://example.com/a","r":"https://t.co/x","ip":"198.51.100.9","ua":"` + firefox + `"}`
	for name, x := range map[string]struct {
		key, header, body string
		want              int
	}{
		"the key":             {key, "Bearer " + key, view, 204},
		"another key":         {key, "Bearer x", view, 401},
		"no key":              {key, "", view, 401},
		"the route is closed": {"", "Bearer ", view, 401},
		"nobody's view":       {key, "Bearer " + key, `{"u":"https://example.com/a"}`, 400},
		"no address":          {key, "Bearer " + key, `{"u":"https://example.com/a","ip":"here","ua":"x"}`, 400},
		"another's host":      {key, "Bearer " + key, strings.Replace(view, "example.com", "evil.example", 1), 403},
	} {
		r := httptest.NewRequest(http.MethodPost, "/collect/server", strings.NewReader(x.body))
		r.RemoteAddr = "10.0.0.5:99" // the server's, never the visitor's
		r.Header.Set("Authorization", x.header)
		w := httptest.NewRecorder()
		c.Server(x.key).ServeHTTP(w, r)
		if w.Code != x.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, x.want)
		}
	}
	// The visitor is the same one whether the script tells of them or the server.
	if code := send(c, `{"u":"https://example.com/b"}`, func(r *http.Request) {
		r.RemoteAddr = "198.51.100.9:4"
	}); code != 204 {
		t.Fatal(code)
	}
	if err := c.last(nil); err != nil {
		t.Fatal(err)
	}
	var views, visitors int
	if err := h.DB.QueryRow("SELECT COUNT(*), COUNT(DISTINCT visitor) FROM cmsjobs_page_views").Scan(&views,
		&visitors); err != nil || views != 2 || visitors != 1 {
		t.Errorf("%d views by %d visitors, %v", views, visitors, err)
	}
}

func TestAFullBufferDropsAndCounts(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	h.Buffer, h.PerAddress = 10, 1e6
	c := h.NewCollector()
	for range 25 {
		if code := send(c, `{"u":"https://example.com/a"}`, nil); code != 204 {
			t.Fatalf("%d", code)
		}
	}
	if got := c.Counts(); got.Accepted != 25 || got.Dropped != 15 {
		t.Errorf("%+v, want 15 of 25 dropped", got)
	}
}

func TestOneAddressCannotFillTheTable(t *testing.T) {
	h := bench(t, jobstest.SQLite) // the clock stands: no token comes back
	c := h.NewCollector()
	codes := map[int]int{}
	for range 80 {
		codes[send(c, `{"u":"https://example.com/a"}`, nil)]++
	}
	if codes[204] != 50 || codes[429] != 30 {
		t.Errorf("%v, want 50 taken and 30 refused", codes)
	}
	if code := send(c, `{"u":"https://example.com/a"}`, func(r *http.Request) {
		r.RemoteAddr = "203.0.113.8:1"
	}); code != 204 {
		t.Errorf("another address got %d", code)
	}
}

func TestOnlyTrustedProxiesMayNameTheVisitor(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	r := httptest.NewRequest(http.MethodPost, "/collect", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.5")
	if got := h.address(r); got.String() != "10.0.0.1" {
		t.Errorf("an unknown proxy was believed: %s", got)
	}
	h.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	if got := h.address(r); got.String() != "203.0.113.5" {
		t.Errorf("%s, want what the proxy saw, not what the visitor claimed", got)
	}
}

func TestSaltsAreDestroyedAndNoAddressIsStored(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	now := h.Now()
	h.salts.now = func() time.Time { return now }
	one, err := h.salts.of(ctx, "2026-03-10")
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSalts(h.DB, h.Now).of(ctx, "2026-03-10")
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("two collectors have two salts (%v)", err)
	}
	now = now.Add(saltLife)
	if err := h.salts.destroy(ctx); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := h.DB.Get(&n, "SELECT COUNT(*) FROM cmsjobs_analytics_salts"); err != nil || n != 0 {
		t.Errorf("%d salts are left (%v)", n, err)
	}
	if visitor(one, "a", "bc", "d") == visitor(one, "ab", "c", "d") {
		t.Error("parts of a visitor's name run into each other")
	}
}

func TestTheScriptIsSmallAndSetsNoCookie(t *testing.T) {
	if n := len(script); n > 2048 {
		t.Errorf("the script has %d bytes", n)
	}
	for _, word := range []string{"cookie", "localStorage", "sessionStorage"} {
		code := bytes.SplitN(script, []byte("\n"), 2)[1] // the first line is a comment
		if bytes.Contains(code, []byte(word)) {
			t.Errorf("the script uses %s", word)
		}
	}
}

func TestReportsAreAsTheyWere(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	rows := generated(400, 3, 5)
	for i := range rows {
		switch {
		case i%5 == 0:
			rows[i].path = `/<script>alert(1)</script>`
		case i%7 == 0:
			rows[i].referrer = "=cmd.example"
		}
	}
	if err := write(ctx, h.DB, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
		t.Fatal(err)
	}
	report, err := h.Report(ctx, ReportQuery{Since: "2026-03-06", Until: "2026-03-09", Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	var html, csv, js bytes.Buffer
	if err := WriteHTML(&html, templates.Report(), report); err != nil {
		t.Fatal(err)
	}
	if err := WriteCSV(&csv, report); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&js, report); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(html.Bytes(), []byte("<script>")) || !bytes.Contains(html.Bytes(), []byte("&lt;script&gt;")) {
		t.Error("a visitor's path became markup")
	}
	var back Report
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Total != report.Total ||
		len(back.Lists) != len(lists) {
		t.Errorf("JSON reads back as %+v (%v)", back.Total, err)
	}
	golden(t, "report.html", html.Bytes())
	golden(t, "report.csv", csv.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testgolden.Check(t, filepath.Join("testdata", name+".golden"), got)
}
