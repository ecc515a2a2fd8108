package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// answerError is echo's error handler.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	p := *s.problemOf(err)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(c.Request().Context().Err(), context.Canceled) {
		// The request stalled, or its client left. An answer must be said in any
		// case: net/http would say 200.
		p = *httpError(http.StatusRequestTimeout, "The request did not arrive as a whole in time.")
		c.Response().Header().Set("Connection", "close")
	}
	p.Detail = s.viewer(c).Text(p.Detail)
	p.Instance = c.Response().Header().Get(echo.HeaderXRequestID)
	if p.Status >= 500 {
		s.cfg.Log.Error("request failed", "event", "http.failed",
			"request", p.Instance, "method", c.Request().Method, "path", c.Path(), "error", err)
	}
	h := c.Response().Header()
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if isPage(c) {
		s.showProblem(c, p)
		return
	}
	if p.Status == http.StatusUnauthorized && h.Get(echo.HeaderWWWAuthenticate) == "" {
		h.Set(echo.HeaderWWWAuthenticate, `Bearer realm="cmsjobs"`)
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	if c.Request().Method == http.MethodHead {
		body = nil
	}
	if err := c.Blob(p.Status, "application/problem+json", body); err != nil {
		s.cfg.Log.Log(c.Request().Context(), slog.LevelDebug, "answer not delivered", "event", "http.undelivered",
			"request", p.Instance, "error", err)
	}
}

// showProblem tells a refusal or a failure on a page; a person who is not
// signed in gets the form, and comes back to the page that they asked for.
func (s *Server) showProblem(c echo.Context, p Problem) {
	var err error
	if p.Status == http.StatusUnauthorized {
		if c.Request().Header.Get("HX-Request") != "" {
			c.Response().Header().Set("HX-Refresh", "true")
		}
		err = s.signInForm(c, p.Status, "", "")
	} else {
		lang := s.printer(c)
		p.Detail, p.Title = s.viewer(c).Text(p.in(lang)), lang.Sentence("%s", []any{p.Title})
		v := s.pageView(c, "", "problem.title", p)
		v.Way, v.Chapter = s.wayBack(c), remedy(p)
		err = s.write(c, p.Status, "problem", v)
	}
	if err != nil {
		s.cfg.Log.Error("page not rendered", "event", "web.page_failed", "request", p.Instance, "error", err)
	}
}

// wayBack is the page that a refused form came from, or the list above a page
// that is not there.
func (s *Server) wayBack(c echo.Context) string {
	if back := local(c.Request().PostForm.Get("back"), ""); back != "" {
		return back
	}
	path := c.Request().URL.Path
	for _, f := range s.cfg.Features {
		for _, e := range append([]MenuEntry{{f.Name, f.Path}}, f.Also...) {
			if e.Path != "" && e.Path != "/admin" && strings.HasPrefix(path, e.Path+"/") {
				return e.Path
			}
		}
	}
	return ""
}
