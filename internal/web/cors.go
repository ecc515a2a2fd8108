package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// cors lets pages of the configured origins read answers. Cookies are never
// allowed across origins: such a page needs a token. Without configured
// origins no header is sent.
func (s *Server) cors(r Route, next echo.HandlerFunc) echo.HandlerFunc {
	if len(s.cfg.AllowedOrigins) == 0 || !strings.HasPrefix(r.Path, "/api/") {
		return next
	}
	return func(c echo.Context) error {
		s.allow(c)
		return next(c)
	}
}

func (s *Server) allow(c echo.Context) bool {
	h, origin := c.Response().Header(), c.Request().Header.Get(echo.HeaderOrigin)
	h.Add(echo.HeaderVary, echo.HeaderOrigin)
	if !slices.Contains(s.cfg.AllowedOrigins, origin) {
		return false
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, origin)
	return true
}

// mountPreflight answers what browsers ask before a request to another origin.
func (s *Server) mountPreflight() {
	if len(s.cfg.AllowedOrigins) == 0 {
		return
	}
	s.echo.OPTIONS("/api/*", func(c echo.Context) error {
		if s.allow(c) {
			h := c.Response().Header()
			h.Set(echo.HeaderAccessControlAllowMethods, "GET, POST, PUT, PATCH, DELETE")
			h.Set(echo.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, Idempotency-Key")
			h.Set(echo.HeaderAccessControlMaxAge, "600")
		}
		return c.NoContent(http.StatusNoContent)
	})
}
