package web

import (
	"errors"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

const (
	principalKey = "principal"
	sessionKey   = "session"
	targetKey    = "target"
	knownKey     = "known" // the state of the figures before a page was made
	detailKey    = "detail"
)

// formTokenHeader and formTokenField carry access.FormToken of the session.
const (
	formTokenHeader = "X-CSRF-Token"
	formTokenField  = "_csrf"
)

// who is the request's principal; the zero one before authorize looked.
func who(c echo.Context) access.Principal {
	p, _ := c.Get(principalKey).(access.Principal)
	return p
}

// caller is whom a request counts for: the token, the account however it
// signed in, or the address of nobody known.
func caller(p access.Principal, address string) string {
	switch {
	case strings.HasPrefix(p.Via, "token"):
		return p.Via
	case p.Known():
		return "account " + p.Name
	}
	return "address " + address
}

// isPage says whether people asked, not a program.
func isPage(c echo.Context) bool {
	path := c.Request().URL.Path
	return path == "/admin" || strings.HasPrefix(path, "/admin/") || inManual(path)
}

// inManual says whether a path is one of the manual, which everybody may read.
func inManual(path string) bool { return path == ManualPath || strings.HasPrefix(path, ManualPath+"/") }

func (s *Server) askForCredentials(c echo.Context) {
	h := c.Response().Header()
	h.Add(echo.HeaderWWWAuthenticate, `Bearer realm="cmsjobs"`)
	if isPage(c) {
		return // shows the sign-in form, not the browser's dialogue
	}
	if _, err := c.Cookie(s.cookieName(c)); err != nil { // a page shows its own form
		h.Add(echo.HeaderWWWAuthenticate, `Basic realm="cmsjobs", charset="UTF-8"`)
	}
}

// identify finds who asks. Credentials that are there but wrong are refused
// even where none are needed.
func (s *Server) identify(c echo.Context) (access.Principal, error) {
	ctx, header := c.Request().Context(), c.Request().Header.Get(echo.HeaderAuthorization)
	scheme, value, _ := strings.Cut(header, " ")
	switch {
	case strings.EqualFold(scheme, "bearer"):
		return s.cfg.Gate.Store.ByToken(ctx, strings.TrimSpace(value))
	case strings.EqualFold(scheme, "basic"):
		name, password, ok := c.Request().BasicAuth()
		if !ok {
			return access.Principal{}, access.ErrRefused
		}
		return s.cfg.Gate.Basic(ctx, access.Login{Name: name, Password: password, Address: c.RealIP()})
	case header != "":
		return access.Principal{}, access.ErrRefused
	}
	cookie, err := c.Cookie(s.cookieName(c))
	if err != nil || cookie.Value == "" {
		return access.Principal{}, nil
	}
	p, err := s.cfg.Gate.BySession(ctx, cookie.Value)
	if errors.Is(err, access.ErrRefused) { // ended: as if it were not there
		return access.Principal{}, nil
	}
	c.Set(sessionKey, cookie.Value)
	return p, err
}

// setAuditTarget notes for the audit log what a request is about, in words.
func setAuditTarget(c echo.Context, target, detail string) {
	c.Set(targetKey, target)
	if detail != "" {
		c.Set(detailKey, detail)
	}
}
