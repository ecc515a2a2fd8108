package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// callers are all who may knock: nobody, each role by its password, each scope
// by a token.
func (s *site) callers() map[string]struct {
	how    with
	scopes access.Scopes
} {
	type caller = struct {
		how    with
		scopes access.Scopes
	}
	all := map[string]caller{"nobody": {func(*http.Request) {}, nil}}
	for _, r := range access.Roles() {
		all["role "+string(r)] = caller{basic(string(r), "right"), r.Scopes()}
	}
	for scope, token := range s.tokens {
		all["token "+string(scope)] = caller{bearer(token), access.Scopes{scope}}
	}
	return all
}

// TestEveryRouteHasItsScope knocks on every route as everybody. The list comes
// from the routes themselves, so none can be forgotten.
func TestEveryRouteHasItsScope(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	// where a form leads to has its own rights
	s.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for name, c := range s.callers() {
		for _, r := range allRoutes() {
			if r.Name == "session.create" {
				continue // refuses by its body, not by the route
			}
			path := strings.NewReplacer(":id", "0b3e8c1e-0000-4000-8000-000000000000", ":name", "none", ":address",
				"x@y.example").Replace(r.Path)
			var body any
			if r.Changes() {
				body = "{}"
			}
			a := s.do(r.Method, path, body, c.how)
			refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
			allowed := r.Scope == "" || c.scopes.Has(r.Scope)
			switch {
			case allowed && refused:
				t.Errorf("%s may not %s %s: %s", name, r.Method, r.Path, a.body)
			case !allowed && !refused:
				t.Errorf("%s may %s %s (%d)", name, r.Method, r.Path, a.status)
			case refused && (c.scopes == nil) != (a.status == http.StatusUnauthorized):
				t.Errorf("%s, %s %s: %d; 401 is for nobody, 403 for somebody", name, r.Method, r.Path, a.status)
			case a.status >= 500:
				t.Errorf("%s, %s %s: %d %s", name, r.Method, r.Path, a.status, a.body)
			}
			for header, value := range map[string]string{"X-Content-Type-Options": "nosniff",
				"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"X-Robots-Tag": "noindex"} {
				if a.header.Get(header) != value {
					t.Errorf("%s %s: %s is %q", r.Method, r.Path, header, a.header.Get(header))
				}
			}
			if !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") ||
				a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %v", r.Method, r.Path, a.header)
			}
		}
	}
}

// TestNoRouteRestsOnAPartThatIsNotThere calls every route of an installation
// that has jobs and nothing else.
func TestNoRouteRestsOnAPartThatIsNotThere(t *testing.T) {
	s := newSite(t, jobstest.SQLite, bare)
	s.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, r := range allRoutes() {
		path := strings.NewReplacer(":id", "1", ":name", "none", ":address", "x@y.example").Replace(r.Path)
		var body any
		if r.Changes() {
			body = "{}"
		}
		a := s.admin(r.Method, path, body)
		if a.status >= 500 || r.Needs != "" &&
			(a.status != http.StatusNotFound || !strings.Contains(string(a.body), string(r.Needs))) {
			t.Errorf("%s %s, which needs %q: %d %.300s", r.Method, r.Path, r.Needs, a.status, a.body)
		}
	}
}

// TestTheTableOfRights shows every route's rights to the reader of a change:
// a new route, or a weaker right, is a line of the diff.
func TestTheTableOfRights(t *testing.T) {
	var table bytes.Buffer
	fmt.Fprintln(&table, "| route | scope | viewer | operator | admin |\n|---|---|---|---|---|")
	for _, r := range allRoutes() {
		fmt.Fprintf(&table, "| %s %s | %s |", r.Method, r.Path, or(string(r.Scope), "none"))
		for _, role := range access.Roles() {
			may := "no"
			if r.Scope == "" || role.Scopes().Has(r.Scope) {
				may = "yes"
			}
			fmt.Fprintf(&table, " %s |", may)
		}
		fmt.Fprintln(&table)
	}
	golden(t, "testdata/rights.golden", table.Bytes())
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func golden(t *testing.T, path string, have []byte) {
	t.Helper()
	testgolden.Check(t, path, have)
}
