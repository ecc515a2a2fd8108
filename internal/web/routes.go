package web

import (
	"net/http"
	"sort"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

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
			"stats, job, run.", Scope: access.Read, Query: []string{"known"}, Stream: true, Type: "text/event-stream",
			handle: (*Server).events},
		{Method: get, Path: "/api/openapi.json", Name: "openapi.document", Summary: "This document.",
			Answer: map[string]any{}, Always: true, handle: (*Server).openAPI},
		{Method: get, Path: "/api/docs", Name: "openapi.page", Summary: "This document, to be read.",
			Type: "text/html", Always: true, handle: (*Server).docs},
	}
}

func (s *Server) asset(c echo.Context) error {
	file, ok := s.pages.assets.files[c.Param("*")]
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if file.zipped != nil && strings.Contains(c.Request().Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		return c.Blob(http.StatusOK, file.jobType, file.zipped)
	}
	return c.Blob(http.StatusOK, file.jobType, file.data)
}

// mountPages adds what needs no authorization: the files of the pages and the way to them.
func (s *Server) mountPages() {
	s.echo.GET("/admin/assets/*", s.asset)
	s.echo.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, "/admin") })
}
