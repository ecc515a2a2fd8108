package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
)

const noticeCookie = "cmsjobs_notice"

// back sends the browser to a page of ours after an action, with a notice there.
func (s *Server) back(c echo.Context, to, key string, args ...any) error {
	return s.backSaying(c, to, s.printer(c).Text(key, args...))
}

// backUndone is back after nothing was done.
func (s *Server) backUndone(c echo.Context, to, key string) error {
	return s.backSaying(c, to, undone+s.printer(c).Text(key))
}

// undone begins a notice that nothing was done.
const undone = "!"

func (s *Server) backSaying(c echo.Context, to, text string) error {
	c.SetCookie(&http.Cookie{Name: noticeCookie, Value: url.QueryEscape(redact.Clip(text, 900)), Path: s.cookiePath(),
		MaxAge:   60,
		HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteStrictMode})
	return c.Redirect(http.StatusSeeOther, to)
}

// notice is what a page says of an action: its text, whether that is bad news, and
// the page that shows what came of it.
type notice struct {
	Text  string
	Fault bool
	Shown string
}

// takeNotice reads the notice once. Loads of a live part leave it.
func (s *Server) takeNotice(c echo.Context) (n notice) {
	cookie, err := c.Cookie(noticeCookie)
	if err != nil || cookie.Value == "" || c.Request().Header.Get("HX-Request") != "" {
		return n
	}
	c.SetCookie(&http.Cookie{Name: noticeCookie, Path: s.cookiePath(), MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	text, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return n
	}
	n.Text, n.Fault = strings.CutPrefix(text, undone)
	if said, shown, linked := strings.Cut(n.Text, "\n"); linked {
		n.Text, n.Shown = said, local(shown, "")
	}
	return n
}

// Following is the page that a form came from, which now follows a job.
func Following(back, id string) string {
	u, err := url.Parse(local(back, "/admin"))
	if err != nil {
		return "/admin/jobs/" + id
	}
	q := u.Query()
	q.Set("job", id)
	u.RawQuery = q.Encode()
	return u.RequestURI()
}
