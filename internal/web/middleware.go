package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/framing"
)

func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				if cause, is := r.(error); is && errors.Is(cause, http.ErrAbortHandler) {
					panic(r)
				}
				err = fmt.Errorf("panic: %v\n%s", r, stack())
			}
		}()
		return next(c)
	}
}

func stack() []byte { return debug.Stack() }

// refuseTwoLengths refuses what could be read as two requests by a proxy in
// front of us and by us (request smuggling).
func refuseTwoLengths(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !framing.Clear(c.Request()) {
			c.Response().Header().Set("Connection", "close")
			return httpError(http.StatusBadRequest, "Send Content-Length or Transfer-Encoding, not both.")
		}
		return next(c)
	}
}

// ContentPolicy lets pages load from us only, and nobody frame them.
const ContentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
	"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXRequestID, uuid.NewString())
		h.Set("Content-Security-Policy", ContentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Robots-Tag", "noindex")
		h.Set("Cache-Control", "no-store")
		if c.Scheme() == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// fromVisitors are the paths that the site's visitors call, not its people.
func fromVisitors(path string) bool {
	return path == "/collect" || strings.HasPrefix(path, "/collect/") || path == "/collect.js"
}

// network is what is left of a shortened address: 24 bits of an IPv4 address,
// 48 of an IPv6 address, which is what one customer of a provider has at most.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	bits := 48
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 24
	}
	short, err := ip.Prefix(bits)
	if err != nil {
		return ""
	}
	return short.Addr().String()
}

// accessLog writes a line for each request. Those of the site's visitors,
// hundreds a second, are logged without an address or with a shortened one, and
// only when debugging unless they failed here.
func (s *Server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := s.cfg.Now()
		if err := next(c); err != nil {
			s.answerError(err, c)
		}
		status := c.Response().Status
		if quiet(c.Path()) && status < 500 {
			return nil
		}
		level := slog.LevelInfo
		fields := []any{"request", c.Response().Header().Get(echo.HeaderXRequestID), "method", c.Request().Method,
			"path", c.Request().URL.Path, "status", status, "bytes", c.Response().Size, "duration",
			s.cfg.Now().Sub(start)}
		switch visitor := fromVisitors(c.Request().URL.Path); {
		case visitor:
			if status < 500 {
				level = slog.LevelDebug
			}
			if s.cfg.ShortenVisitors {
				fields = append(fields, "network", network(c.RealIP()))
			}
		default:
			fields = append(fields, "address", c.RealIP(), "who", who(c).Name)
		}
		s.cfg.Log.With(fields...).Log(c.Request().Context(), level, "request", "event", "http.request")
		return nil
	}
}

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
