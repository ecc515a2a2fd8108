package sites

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// reply is what a request got.
type reply struct {
	status  int
	header  http.Header
	body    string
	cookies []*http.Cookie
}

// ask sends one request as a browser or a program does; it follows no redirect.
func (p *process) ask(method, path, body string, change func(*http.Request)) reply {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		p.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text), answer.Cookies()}
}

// signIn returns the session of a site.
func (p *process) signIn(site, password, next string) (*http.Cookie, reply) {
	p.t.Helper()
	form := url.Values{"name": {"admin"}, "password": {password}, "next": {next}}
	got := p.ask(http.MethodPost, "/sites/"+site+"/admin/sign-in", form.Encode(), nil)
	for _, c := range got.cookies {
		if c.Name == "cmsjobs-"+site {
			return c, got
		}
	}
	return nil, got
}

func withCookie(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: name, Value: value}) }
}

func twoSites(t *testing.T) *process {
	p := start(t, fmt.Sprintf(`sites:
  shop-a: {database: {dsn: %q}, http: {admin_password: password-of-a}}
  shop-b: {database: {dsn: %q}, http: {admin_password: password-of-b}}
  shop-c: {database: {dsn: %q}, http: {url: 'https://Jobs.shop-c.example', admin_password: password-of-c}}
`, database(t, jobstest.SQLite), database(t, jobstest.SQLite), database(t, jobstest.SQLite)))
	for _, name := range p.set.Names {
		p.site(name)
		p.until(name+" answers", func() bool { return p.status("/sites/"+name+"/livez") != http.StatusServiceUnavailable })
	}
	return p
}

// What lets somebody into one site is nothing to another one.
func TestASessionOfOneSiteIsNoneOfAnother(t *testing.T) {
	p := twoSites(t)
	a, got := p.signIn("shop-a", "password-of-a", "/admin/jobs")
	if a == nil || got.header.Get("Location") != "/sites/shop-a/admin/jobs" {
		t.Fatalf("signing in to shop-a: %d %s", got.status, got.header.Get("Location"))
	}
	if c, got := p.signIn("shop-b", "password-of-a", ""); c != nil || got.status != http.StatusUnauthorized {
		t.Errorf("the password of shop-a let into shop-b: %d", got.status)
	}
	_, token, err := access.NewStore(p.site("shop-a").OwnDB, time.Now).CreateToken(t.Context(), access.Token{Name: "ci",
		Scopes: []access.Scope{access.Admin, access.Read}})
	if err != nil {
		t.Fatal(err)
	}
	own := p.ask(http.MethodGet, "/sites/shop-a/admin/settings", "", withCookie("cmsjobs-shop-a", a.Value))
	if own.status != http.StatusOK || strings.Contains(own.body, `href="/admin`) {
		t.Fatalf("shop-a's own session: %d, or a link leads out of the site", own.status)
	}
	all := func(r *http.Request) {
		for _, name := range []string{"cmsjobs", "cmsjobs-shop-a", "cmsjobs-shop-b", "cmsjobs-shop-c",
			"__Host-cmsjobs-shop-b"} {
			r.AddCookie(&http.Cookie{Name: name, Value: a.Value})
		}
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	if got := p.ask(http.MethodGet, "/sites/shop-a/api/v1/jobs", "", bearer); got.status != http.StatusOK {
		t.Fatalf("shop-a's own token: %d", got.status)
	}
	for _, path := range []string{"/sites/shop-b/admin/settings", "/sites/shop-b/api/v1/jobs",
		"/sites/shop-a/../shop-b/api/v1/jobs", "/sites/shop-a/%2e%2e/shop-b/api/v1/jobs",
		"/sites/shop-a//../shop-b/api/v1/jobs", "/sites/shop-a/..%2fshop-b/api/v1/jobs", "//sites/shop-b/api/v1/jobs",
		"/sites/SHOP-B/api/v1/jobs", "/sites/shop-b%2fapi/v1/jobs", "/sites//shop-b/admin"} {
		for by, change := range map[string]func(*http.Request){"session": all, "token": bearer,
			"both": func(r *http.Request) { all(r); bearer(r) }} {
			if got := p.ask(http.MethodGet, path, "", change); got.status == http.StatusOK {
				t.Errorf("%s by shop-a's %s: 200\n%.300s", path, by, got.body)
			}
		}
	}
	for _, next := range []string{"/sites/shop-b/admin", "//evil.example/admin", "https://evil.example/admin"} {
		if _, got := p.signIn("shop-a", "password-of-a", next); got.header.Get("Location") != "/sites/shop-a/admin" {
			t.Errorf("after the sign-in, next=%s leads to %s", next, got.header.Get("Location"))
		}
	}
}

// A site's own host serves that site alone, at its root; a path leads there.
func TestASiteWithItsOwnHost(t *testing.T) {
	p := twoSites(t)
	at := func(host, path string) reply {
		return p.ask(http.MethodGet, path, "", func(r *http.Request) { r.Host = host })
	}
	if got := at("jobs.shop-c.example", "/admin"); got.status != http.StatusUnauthorized ||
		!strings.Contains(got.body, `action="/admin/sign-in"`) {
		t.Errorf("the page of shop-c: %d\n%.300s", got.status, got.body)
	}
	if got := at("jobs.shop-c.example", "/sites/shop-a/admin"); got.status != http.StatusNotFound {
		t.Errorf("shop-a by the host of shop-c: %d", got.status)
	}
	got := at("127.0.0.1", "/sites/shop-c/admin/jobs?status=failed")
	if got.status != http.StatusPermanentRedirect ||
		got.header.Get("Location") != "https://Jobs.shop-c.example/admin/jobs?status=failed" {
		t.Errorf("shop-c by its path: %d %s", got.status, got.header.Get("Location"))
	}
}

// Nobody learns the names of the sites but who has a session of them.
func TestTheListShowsTheCallersSitesOnly(t *testing.T) {
	p := twoSites(t)
	for _, path := range []string{"/", "/admin", "/readyz", "/livez", "/metrics", "/sites/", "/sites/never/admin",
		"/none"} {
		if got := p.ask(http.MethodGet, path, "", nil); strings.Contains(got.body, "shop-") {
			t.Errorf("%s names a site to a stranger:\n%s", path, got.body)
		}
	}
	a, _ := p.signIn("shop-a", "password-of-a", "")
	b, _ := p.signIn("shop-b", "password-of-b", "")
	if a == nil || b == nil {
		t.Fatal("nobody could sign in")
	}
	one := p.ask(http.MethodGet, "/admin", "", withCookie(a.Name, a.Value))
	if !strings.Contains(one.body, `href="/sites/shop-a/admin"`) || strings.Contains(one.body, "shop-b") ||
		!strings.Contains(one.body, "</svg>ready</span></td>") {
		t.Errorf("the list of who knows shop-a:\n%s", one.body)
	}
	page := p.ask(http.MethodGet, "/sites/shop-a/admin", "", func(r *http.Request) { r.AddCookie(a); r.AddCookie(b) })
	for _, part := range []string{`<a href="/sites/shop-a/admin" aria-current="true">shop-a</a>`,
		`<a href="/sites/shop-b/admin">shop-b</a>`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("the page of shop-a does not have %s", part)
		}
	}
}
