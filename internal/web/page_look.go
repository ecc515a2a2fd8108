package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

const (
	themeCookie    = "cmsjobs_theme"
	languageCookie = "cmsjobs_lang"
	lookAge        = 365 * 24 * time.Hour
)

func theme(c echo.Context) string {
	if cookie, err := c.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		return cookie.Value
	}
	return "auto"
}

// preferences changes theme and language: the browser's own matter, kept in cookies.
func (s *Server) preferences(c echo.Context) error {
	switch t := c.FormValue("theme"); t {
	case "light", "dark", "auto":
		s.keep(c, themeCookie, t, lookAge)
	}
	if l := c.FormValue("lang"); s.texts.Known(l) {
		s.keep(c, languageCookie, l, lookAge)
	}
	return c.Redirect(http.StatusSeeOther, local(c.FormValue("back"), "/admin/sign-in"))
}

// keep keeps a choice in the browser.
func (s *Server) keep(c echo.Context, name, value string, age time.Duration) {
	c.SetCookie(&http.Cookie{Name: name, Value: value, Path: s.lookPath(), MaxAge: int(age / time.Second),
		HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteLaxMode})
}

// printer writes texts in the caller's language: their choice, else the first
// that their browser asks for.
func (s *Server) printer(c echo.Context) locale.Printer {
	if cookie, err := c.Cookie(languageCookie); err == nil && s.texts.Known(cookie.Value) {
		return s.texts.In(cookie.Value)
	}
	for _, part := range strings.Split(c.Request().Header.Get("Accept-Language"), ",") {
		code, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		code, _, _ = strings.Cut(strings.ToLower(code), "-")
		if s.texts.Known(code) {
			return s.texts.In(code)
		}
	}
	return s.texts.In(locale.Languages()[0].Code)
}
