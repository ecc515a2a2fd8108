package web

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// SignInRequest is a name and a password.
type SignInRequest struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// SessionView is who asks and what they may do.
type SessionView struct {
	Name   string         `json:"name"` // "" for nobody
	Via    string         `json:"via"`
	Scopes []access.Scope `json:"scopes"`
	Types  []string       `json:"types"`
	// FormToken goes into the header X-CSRF-Token, or the form field _csrf, of
	// every change by this session.
	FormToken string `json:"csrf_token,omitempty"`
}

func (s *Server) sessionCookie(c echo.Context, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: s.cookieName(c), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true,
		Secure: c.Scheme() == "https", SameSite: http.SameSiteStrictMode}
}

func (s *Server) signIn(c echo.Context) error {
	var r SignInRequest
	if err := body(c, &r); err != nil {
		return err
	}
	session, p, err := s.letIn(c, r)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, SessionView{Name: p.Name, Via: "session", Scopes: p.Role.Scopes(),
		Types: []string{}, FormToken: access.FormToken(session)})
}

// letIn checks a sign-in, starts a session and sets its cookie. An older
// session of the same browser ends.
func (s *Server) letIn(c echo.Context, r SignInRequest) (string, access.Person, error) {
	setAuditTarget(c, redact.Clip(strings.ToValidUTF8(r.Name, "\uFFFD"), 191), "")
	ctx := c.Request().Context()
	person, err := s.cfg.Gate.SignIn(ctx, access.Login{Name: r.Name, Password: r.Password, Address: c.RealIP()})
	if errors.Is(err, access.ErrRefused) {
		return "", person, httpError(http.StatusUnauthorized, "Name or password is wrong, or the account has no "+
			"right here.")
	}
	if err != nil {
		return "", person, err
	}
	if old, err := c.Cookie(s.cookieName(c)); err == nil {
		if err := s.cfg.Gate.End(ctx, old.Value); err != nil {
			return "", person, err
		}
	}
	session, err := s.cfg.Gate.Begin(ctx, person, c.RealIP(), strings.ToValidUTF8(c.Request().UserAgent(), "\uFFFD"))
	if err != nil {
		return "", person, err
	}
	c.SetCookie(s.sessionCookie(c, session, access.SessionLife))
	c.Set(principalKey, access.Principal{Name: person.Name, Via: "session", Scopes: person.Role.Scopes()})
	return session, person, nil
}

func (s *Server) session(c echo.Context) error {
	p := who(c)
	v := SessionView{Name: p.Name, Via: p.Via, Scopes: append([]access.Scope{}, p.Scopes...),
		Types: append([]string{}, p.Types...)}
	if session, ok := c.Get(sessionKey).(string); ok && p.Via == "session" {
		v.FormToken = access.FormToken(session)
	}
	return c.JSON(http.StatusOK, v)
}

func (s *Server) signOut(c echo.Context) error {
	if session, ok := c.Get(sessionKey).(string); ok {
		if err := s.cfg.Gate.End(c.Request().Context(), session); err != nil {
			return err
		}
	}
	c.SetCookie(s.sessionCookie(c, "", -time.Second))
	return c.NoContent(http.StatusNoContent)
}

// --- Signing in and out ---

type signInPageData struct{ Name, Next, Problem string }

func (s *Server) signInForm(c echo.Context, status int, name, problem string) error {
	next := local(c.FormValue("next"), "/admin")
	if c.Request().Method == http.MethodGet && c.Path() != "/admin/sign-in" {
		next = local(c.Request().URL.RequestURI(), "/admin")
	}
	return s.write(c, status, "signin", s.pageView(c, "signin", "signin.title", signInPageData{name, next, problem}))
}

func (s *Server) signInPage(c echo.Context) error { return s.signInForm(c, http.StatusOK, "", "") }

func (s *Server) signInByForm(c echo.Context) error {
	r := SignInRequest{Name: c.FormValue("name"), Password: c.FormValue("password")}
	if _, _, err := s.letIn(c, r); err != nil {
		p := s.problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		key := "signin.wrong"
		if errors.Is(err, access.ErrThrottled) {
			key = "signin.throttled"
		}
		setAuditTarget(c, redact.Clip(strings.ToValidUTF8(r.Name, "\uFFFD"), 191), p.Detail)
		return s.signInForm(c, p.Status, r.Name, s.printer(c).Text(key))
	}
	return c.Redirect(http.StatusSeeOther, local(c.FormValue("next"), "/admin"))
}

func (s *Server) signOutByForm(c echo.Context) error {
	if session, ok := c.Get(sessionKey).(string); ok {
		if err := s.cfg.Gate.End(c.Request().Context(), session); err != nil {
			return err
		}
	}
	c.SetCookie(s.sessionCookie(c, "", -time.Second))
	return c.Redirect(http.StatusSeeOther, "/admin/sign-in")
}
