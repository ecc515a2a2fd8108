package web_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/web/feature/audit"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/tokens"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// signIn starts a session and returns its cookie and form token.
func (s *site) signIn(name string) (*http.Cookie, string) {
	s.t.Helper()
	a := s.do("POST", "/api/v1/session", map[string]string{"name": name, "password": "right"}).want(s.t, 201)
	var session web.SessionView
	a.into(s.t, &session)
	c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		s.t.Fatal(err)
	}
	return c, session.FormToken
}

func TestASessionNeedsItsFormTokenAndItsOrigin(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		c, form := s.signIn("operator")
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("the cookie: %+v", c)
		}
		job := `{"type":"cache.clear"}`
		s.do("GET", "/api/v1/jobs", nil, cookie(c)).want(t, 200)
		s.do("POST", "/api/v1/jobs", job, cookie(c)).want(t, 403)
		s.do("POST", "/api/v1/jobs", job, cookie(c), header("X-CSRF-Token", strings.Repeat("0", 64))).want(t, 403)
		s.do("POST", "/api/v1/jobs", job, cookie(c), header("X-CSRF-Token", form),
			header("Origin", "https://evil.example")).want(t, 403)
		s.do("POST", "/api/v1/jobs", job, cookie(c), header("X-CSRF-Token", form),
			header("Sec-Fetch-Site", "cross-site")).want(t, 403)
		s.do("POST", "/api/v1/jobs", job, cookie(c), header("X-CSRF-Token", form)).want(t, 201)
		s.do("POST", "/api/v1/jobs", job, basic("operator", "right"), header("Sec-Fetch-Site", "cross-site")).want(t,
			403)
		s.do("POST", "/api/v1/jobs", job, bearer(s.tokens[access.Enqueue]), header("Sec-Fetch-Site", "cross-site")).
			want(t, 201)

		s.do("DELETE", "/api/v1/session", nil, cookie(c), header("X-CSRF-Token", form)).want(t, 204)
		s.do("GET", "/api/v1/jobs", nil, cookie(c)).want(t, 401)
	})
}

func TestWrongCredentialsAreRefusedEverywhere(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) {
		c.EnqueueRule, c.ManageRule, c.PublicMetrics = "true", "true",
			true
	})
	for _, how := range []with{bearer("cmsj_wrong"), bearer(""), basic("admin", "wrong"), basic("nobody", "right"),
		header("Authorization", "Digest x"), header("Authorization", "Basic ???")} {
		a := s.do("GET", "/api/v1/jobs", nil, how).want(t, 401)
		if a.header.Get("WWW-Authenticate") == "" {
			t.Error("a 401 does not say how to sign in")
		}
	}
	// open by the rule; tokens in queries mean nothing
	s.do("GET", "/api/v1/jobs?access_token="+s.tokens[access.Admin], nil).want(t, 200)
	closed := newSite(t, jobstest.SQLite)
	closed.do("GET", "/api/v1/jobs?access_token="+closed.tokens[access.Admin], nil).want(t, 401)
}

func TestTheThirdWrongPasswordAndTheHundredth(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	for i := range 12 {
		a := s.do("POST", "/api/v1/session", `{"name":"admin","password":"wrong"}`)
		if want := map[bool]int{true: 401, false: 429}[i < 10]; a.status != want {
			t.Fatalf("try %d: %d, want %d", i+1, a.status, want)
		}
		if a.status == 429 && a.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	}
	s.do("POST", "/api/v1/session", `{"name":"admin","password":"right"}`).want(t, 429)
	s.do("GET", "/api/v1/jobs", nil, basic("viewer", "right")).want(t, 429) // the address is throttled, too
}

func TestRulesOpenWhatTheySay(t *testing.T) {
	job := `{"type":"cache.clear"}`
	public := newSite(t, jobstest.SQLite, func(c *config) {
		c.EnqueueRule, c.AllowedTopics = "true",
			[]string{"cache.clear"}
	})
	public.do("POST", "/api/jobs/enqueue", job).want(t, 201)
	public.do("POST", "/api/jobs/enqueue", job, header("Sec-Fetch-Site", "cross-site")).want(t, 403)
	public.do("POST", "/api/jobs/enqueue", `{"type":"mail.send","payload":{"to":"a@b"}}`).want(t, 403)
	public.admin("POST", "/api/jobs/enqueue", `{"type":"mail.send","payload":{"to":"a@b"}}`).want(t, 201)
	public.do("GET", "/api/jobs", nil).want(t, 401)

	known := newSite(t, jobstest.SQLite, func(c *config) {
		c.EnqueueRule, c.ManageRule = "@request.auth.id != ''",
			`@request.auth.id != ""`
	})
	known.do("POST", "/api/jobs/enqueue", job).want(t, 401)
	known.do("POST", "/api/jobs/enqueue", job, basic("viewer", "right")).want(t, 201)
	known.do("GET", "/api/jobs", nil, bearer(known.tokens[access.Enqueue])).want(t, 200)
	known.do("GET", "/api/v1/tokens", nil, basic("viewer", "right")).want(t, 403)

	guarded := newSite(t, jobstest.SQLite, func(c *config) { c.AdminKinds = []string{"cache.clear"} })
	guarded.do("POST", "/api/v1/jobs", job, bearer(guarded.tokens[access.Enqueue])).want(t, 403)
	guarded.admin("POST", "/api/v1/jobs", job).want(t, 201)

	closed := newSite(t, jobstest.SQLite, func(c *config) { c.APIDisabled = true })
	closed.admin("GET", "/api/v1/jobs", nil).want(t, 404)
	closed.do("GET", "/healthz", nil).want(t, 200)
	if _, err := web.New(web.Config{ManageRule: "1=1"}); err == nil {
		t.Error("an unknown rule is taken")
	}
}

func TestATokensKindsAreItsOnlyOnes(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	var made tokens.TokenCreated
	s.admin("POST", "/api/v1/tokens",
		`{"name":"theme","scopes":["enqueue"],"types":["cache.clear"],"expires_in":"1h"}`).want(t, 201).into(t, &made)
	s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, bearer(made.Secret)).want(t, 201)
	s.do("POST", "/api/v1/jobs", `{"type":"mail.send","payload":{"to":"a@b"}}`, bearer(made.Secret)).want(t, 403)
	s.do("POST", "/api/v1/jobs/batch", `{"jobs":[{"type":"cache.clear"},{"type":"mail.send","payload":{"to":"a@b"}}]}`,
		bearer(made.Secret)).want(t, 403)
	if list := s.admin("GET", "/api/v1/tokens", nil).want(t, 200); strings.Contains(string(list.body), made.Secret) {
		t.Error("the list shows a token's secret")
	}
	s.admin("DELETE", "/api/v1/tokens/"+made.Token.ID, nil).want(t, 204)
	s.do("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, bearer(made.Secret)).want(t, 401)
	s.admin("POST", "/api/v1/tokens", `{"name":"x","scopes":["root"]}`).want(t, 422)
	s.admin("POST", "/api/v1/tokens", `{"name":"","scopes":["read"]}`).want(t, 422)
}

func TestEveryChangeIsAudited(t *testing.T) {
	everywhere(t, func(t *testing.T, s *site) {
		id := s.enqueue(`{"type":"cache.clear","delay":3600}`)
		s.do("DELETE", "/api/v1/jobs/"+id, nil, basic("viewer", "right")).want(t, 403)
		s.do("DELETE", "/api/v1/jobs/"+id, nil, basic("operator", "right")).want(t, 204)
		s.do("POST", "/api/v1/session", `{"name":"admin","password":"wrong"}`).want(t, 401)
		var entries audit.AuditEntryList
		s.admin("GET", "/api/v1/audit", nil).want(t, 200).into(t, &entries)
		var got []string
		for _, d := range entries.Items {
			got = append(got,
				strings.Join([]string{d.Actor, d.Via[:min(5, len(d.Via))], d.Action, http.StatusText(d.Status)}, "|"))
			if d.Address != "127.0.0.1" {
				t.Errorf("address %q", d.Address)
			}
		}
		want := []string{"||session.create|Unauthorized", "operator|basic|jobs.delete|No Content",
			"viewer|basic|jobs.delete|Forbidden", "test-admin|token|jobs.enqueue|Created"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if entries.Items[1].Target != id || entries.Items[3].Target != id {
			t.Errorf("targets: %+v", entries.Items)
		}
		var one audit.AuditEntryList
		s.admin("GET", "/api/v1/audit?actor=viewer&limit=1", nil).want(t, 200).into(t, &one)
		if len(one.Items) != 1 || one.Items[0].Actor != "viewer" {
			t.Errorf("%+v", one)
		}
	})
}

func TestOnlyTrustedProxiesAreBelieved(t *testing.T) {
	address := func(s *site) string {
		s.admin("POST", "/api/v1/jobs", `{"type":"cache.clear"}`, header("X-Forwarded-For", "198.51.100.7"),
			header("X-Real-IP", "198.51.100.7")).want(t, 201)
		var entries audit.AuditEntryList
		s.admin("GET", "/api/v1/audit", nil).want(t, 200).into(t, &entries)
		return entries.Items[0].Address
	}
	if got := address(newSite(t, jobstest.SQLite)); got != "127.0.0.1" {
		t.Errorf("without trusted proxies: %s", got)
	}
	if got := address(
		newSite(t, jobstest.SQLite, func(c *config) {
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		})); got != "198.51.100.7" {
		t.Errorf("behind a trusted proxy: %s", got)
	}
	if got := address(
		newSite(t, jobstest.SQLite, func(c *config) {
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		})); got != "127.0.0.1" {
		t.Errorf("behind a stranger: %s", got)
	}
}

func TestOtherOriginsReadNothingUnlessConfigured(t *testing.T) {
	s := newSite(t, jobstest.SQLite, func(c *config) { c.AllowedOrigins = []string{"https://admin.example"} })
	a := s.admin("GET", "/api/v1/jobs", nil, header("Origin", "https://admin.example")).want(t, 200)
	if a.header.Get("Access-Control-Allow-Origin") != "https://admin.example" ||
		a.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", a.header)
	}
	if a = s.admin("GET", "/api/v1/jobs", nil, header("Origin", "https://evil.example")); a.header.Get(
		"Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.header)
	}
	if a = s.do("OPTIONS", "/api/v1/jobs", nil, header("Origin", "https://admin.example")).want(t, 204); a.header.Get(
		"Access-Control-Allow-Methods") == "" {
		t.Errorf("%v", a.header)
	}
}
