package web

import (
	"net/http"
	"sort"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// APIDialect is whose words a route speaks: our own, or a specification's.
type APIDialect int

const (
	V1               APIDialect = iota // queued, processing, completed, failed, cancelled
	PocketBaseCompat                   // S1: pending, processing, completed, failed
	S2Compat                           // S2: queued, running, succeeded, failed; camelCase
	familyCount                        // how many there are
)

// Route is one thing that can be asked, and who may ask it.
type Route struct {
	Method, Path string
	// Name is what the audit log and the document call it: area.verb.
	Name, Summary string
	// Scope that it needs; "" is open to everybody.
	Scope access.Scope
	// Managed routes are opened by manage_rule, too.
	Managed bool
	// Stream routes have no time limit.
	Stream bool
	// Quiet routes change nothing although their method could.
	Quiet   bool
	Dialect APIDialect
	Query   []string // names of parameters, described in openapi
	Body    any      // a value of the body's type; nil for none
	Answer  any      // a value of the answer's type; nil for none
	Type    string   // of the answer; "" is application/json
	Status  int      // of success; 0 is 200
	// Needs is the part without which it answers 404.
	Needs string
	// Page routes answer people with HTML; they are not in the document.
	Page bool
	// Always routes stay when the API is switched off: those for programs that
	// watch the service.
	Always bool
	// Handle answers; routes of the server have handle instead.
	Handle func(*Request) error
	handle func(*Server, echo.Context) error
}

// changes says whether the route can change anything.
func (r Route) changes() bool { return r.Method != http.MethodGet && !r.Quiet }

// Requires is the route as one that needs a part.
func (r Route) Requires(p string) Route {
	r.Needs = p
	return r
}

// ListQuery names the parameters of a list's page.
func ListQuery() []string { return []string{"limit", "offset", "cursor"} }

// Routes lists every route, of the server and of features: those of the API are
// documented, all of them are in the table of rights.
func Routes(features []Feature) []Route {
	var all []Route
	all = append(all, sessionRoutes()...)
	for _, f := range features {
		all = append(all, f.Routes...)
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].Path < all[k].Path })
	return all
}

// sessionRoutes are what every installation has: sessions, the look of the pages
// and the description of the API.
func sessionRoutes() []Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	page := func(path, name, summary string, handle func(*Server, echo.Context) error) Route {
		return Route{Method: get, Path: path, Name: name, Summary: summary, Page: true, Type: "text/html",
			handle: handle}
	}
	form := func(path, name, summary string, handle func(*Server, echo.Context) error) Route {
		return Route{Method: post, Path: path, Name: name, Summary: summary, Page: true, Type: "text/html",
			handle: handle}
	}
	look := form("/admin/look", "pages.look", "Choose theme and language.", (*Server).preferences)
	look.Quiet = true
	return []Route{
		{Method: post, Path: "/api/v1/session", Name: "session.create", Summary: "Sign in by name and password; the " +
			"session comes as a cookie.", Body: SignInRequest{}, Answer: SessionView{}, Status: http.StatusCreated,
			handle: (*Server).signIn},
		{Method: get, Path: "/api/v1/session", Name: "session.show", Summary: "Who am I, and what may I do?",
			Answer: SessionView{}, handle: (*Server).session},
		{Method: del, Path: "/api/v1/session", Name: "session.delete", Summary: "Sign out.",
			Status: http.StatusNoContent, handle: (*Server).signOut},
		page("/admin/sign-in", "pages.signIn", "The sign-in form.", (*Server).signInPage),
		form("/admin/sign-in", "session.create", "Sign in.", (*Server).signInByForm),
		form("/admin/sign-out", "session.delete", "Sign out.", (*Server).signOutByForm),
		look,
		{Method: get, Path: "/api/v1/events", Name: "events.stream", Summary: "Live changes as server-sent events: " +
			"stats, job, run.", Scope: access.Read, Stream: true, Type: "text/event-stream", handle: (*Server).events},
		{Method: get, Path: "/api/openapi.json", Name: "openapi.document", Summary: "This document.",
			Answer: map[string]any{}, Always: true, handle: (*Server).openAPI},
		{Method: get, Path: "/api/docs", Name: "openapi.page", Summary: "This document, to be read.",
			Type: "text/html", Always: true, handle: (*Server).docs},
	}
}

func (s *Server) mount() {
	for _, r := range s.routes {
		if s.cfg.APIDisabled && !r.Always {
			continue
		}
		s.echo.Add(r.Method, r.Path, s.cors(r, s.authorize(r)))
	}
	if !s.cfg.APIDisabled {
		s.mountPages()
	}
	for path, handler := range s.cfg.Mount {
		s.echo.Any(path, echo.WrapHandler(handler))
	}
	s.mountPreflight()
}
