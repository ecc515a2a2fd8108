package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
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
	n := notice{}
	n.Text, n.Fault = strings.CutPrefix(text, undone)
	if said, shown, linked := strings.Cut(n.Text, "\n"); linked {
		n.Text, n.Shown = said, shown
	}
	return s.backNoticing(c, to, n)
}

// backNoticing sends the browser to a page, which says the notice once.
func (s *Server) backNoticing(c echo.Context, to string, n notice) error {
	n.Text = redact.Clip(n.Text, 900)
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("writing a notice: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(data)
	c.SetCookie(&http.Cookie{Name: noticeCookie, Value: text + "." + sessionMark(c, text), Path: s.cookiePath(),
		MaxAge:   60,
		HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteStrictMode})
	return c.Redirect(http.StatusSeeOther, to)
}

// sessionMark signs a text for the caller's session: nobody else can set a cookie
// that makes a page offer an action.
func sessionMark(c echo.Context, text string) string {
	session, _ := c.Get(sessionKey).(string)
	mark := hmac.New(sha256.New, []byte(access.FormToken(session)))
	mark.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mark.Sum(nil))
}

// notice is what a page says of an action: its text, whether that is bad news, the
// page that shows what came of it, and the form that takes it back.
type notice struct {
	Text  string
	Fault bool
	Shown string
	Undo  *Undo
}

// takeNotice reads the notice once. Loads of a live part leave it.
func (s *Server) takeNotice(c echo.Context) (n notice) {
	cookie, err := c.Cookie(noticeCookie)
	if err != nil || cookie.Value == "" || c.Request().Header.Get("HX-Request") != "" {
		return n
	}
	c.SetCookie(&http.Cookie{Name: noticeCookie, Path: s.cookiePath(), MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	text, mark, _ := strings.Cut(cookie.Value, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !equal(mark, sessionMark(c, text)) || json.Unmarshal(data, &n) != nil {
		return notice{}
	}
	if n.Shown = local(n.Shown, ""); n.Undo != nil && s.undoLate(c, n.Undo.Until) {
		n.Undo = nil
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

// --- Taking an action back ---

// Undo is the form that takes an action back: a route of the pages, which checks the
// caller's rights as it always does, and its fields.
type Undo struct {
	Path   string
	Fields [][2]string
	// Until is when it ends, with the session's mark; the server sets it.
	Until string
}

// undoLife is how long an action can be taken back: what a person sees they still
// remember, and nobody else has built on it yet.
const undoLife = 2 * time.Minute

// undoField is the form's field that holds Until.
const undoField = "undo"

// BackUndoable is Back with a button that takes the action back.
func (r *Request) BackUndoable(to string, undo Undo, key string, args ...any) error {
	until := strconv.FormatInt(r.Now().Add(undoLife).Unix(), 10)
	undo.Until = until + "." + sessionMark(r.Context, undoField+until)
	return r.server.backNoticing(r.Context, to, notice{Text: r.Text(key, args...), Undo: &undo})
}

// undoLate says whether the time to take something back is over.
func (s *Server) undoLate(c echo.Context, value string) bool {
	text, mark, _ := strings.Cut(value, ".")
	until, err := strconv.ParseInt(text, 10, 64)
	return err != nil || !equal(mark, sessionMark(c, undoField+text)) || s.cfg.Now().Unix() > until
}

// serveUndo answers a form that takes something back too late: what was done may have
// been changed since, by others.
func (s *Server) serveUndo(c echo.Context) (late bool, err error) {
	value := c.FormValue(undoField)
	if value == "" || !s.undoLate(c, value) {
		return false, nil
	}
	setAuditTarget(c, "", "undo came too late")
	return true, s.backUndone(c, local(c.FormValue("back"), "/admin"), "undo.late")
}

// isForm says whether a request is one of the pages' forms.
func isForm(c echo.Context) bool {
	return c.Request().Method == http.MethodPost &&
		strings.HasPrefix(c.Request().Header.Get(echo.HeaderContentType), echo.MIMEApplicationForm)
}
