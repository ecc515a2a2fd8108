package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Token and Deed are shown as access keeps them.
type (
	Token      = access.Token
	AuditEntry = access.AuditEntry
)

// SignInRequest is a name and a password.
type SignInRequest struct {
	Name     string `json:"name"`
	Password string `json:"password"`
}

// SessionView is who asks and what he may do.
type SessionView struct {
	Name   string         `json:"name"` // "" for nobody
	Via    string         `json:"via"`
	Scopes []access.Scope `json:"scopes"`
	Types  []string       `json:"types"`
	// FormToken goes into the header X-CSRF-Token, or the form field _csrf, of
	// every change by this session.
	FormToken string `json:"csrf_token,omitempty"`
}

// cookieName is the session's cookie: bound to this host where HTTPS is used.
func cookieName(c echo.Context) string {
	if c.Scheme() == "https" {
		return "__Host-cmsjobs"
	}
	return "cmsjobs"
}

func sessionCookie(c echo.Context, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: cookieName(c), Value: value, Path: "/", MaxAge: int(life / time.Second), HttpOnly: true, Secure: c.Scheme() == "https", SameSite: http.SameSiteStrictMode}
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
	return c.JSON(http.StatusCreated, SessionView{Name: p.Name, Via: "session", Scopes: p.Role.Scopes(), Types: []string{}, FormToken: access.FormToken(session)})
}

// letIn checks a sign-in, starts a session and sets its cookie. An older
// session of the same browser ends.
func (s *Server) letIn(c echo.Context, r SignInRequest) (string, access.Person, error) {
	setAuditTarget(c, clip(strings.ToValidUTF8(r.Name, "\uFFFD"), 191), "")
	ctx := c.Request().Context()
	person, err := s.cfg.Gate.SignIn(ctx, access.Login{Name: r.Name, Password: r.Password, Address: c.RealIP()})
	if errors.Is(err, access.ErrRefused) {
		return "", person, httpError(http.StatusUnauthorized, "Name or password is wrong, or the account has no right here.")
	}
	if err != nil {
		return "", person, err
	}
	if old, err := c.Cookie(cookieName(c)); err == nil {
		if err := s.cfg.Gate.End(ctx, old.Value); err != nil {
			return "", person, err
		}
	}
	session, err := s.cfg.Gate.Begin(ctx, person, c.RealIP(), strings.ToValidUTF8(c.Request().UserAgent(), "\uFFFD"))
	if err != nil {
		return "", person, err
	}
	c.SetCookie(sessionCookie(c, session, access.SessionLife))
	c.Set(principalKey, access.Principal{Name: person.Name, Via: "session", Scopes: person.Role.Scopes()})
	return session, person, nil
}

func (s *Server) session(c echo.Context) error {
	p := who(c)
	v := SessionView{Name: p.Name, Via: p.Via, Scopes: ops.Each(p.Scopes, same), Types: ops.Each(p.Types, same)}
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
	c.SetCookie(sessionCookie(c, "", -time.Second))
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) listTokens(c echo.Context) error {
	list, err := s.cfg.Gate.Store.Tokens(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, TokenList{Items: list})
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`          // read, enqueue, operate, admin
	Types  []string `json:"types,omitempty"` // that it may enqueue; empty: any
	// ExpiresIn is a length like 720h; empty: never.
	ExpiresIn string `json:"expires_in,omitempty"`
}

// TokenCreated is a new token with its secret.
type TokenCreated struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

func (s *Server) createToken(c echo.Context) error {
	var r TokenRequest
	if err := body(c, &r); err != nil {
		return err
	}
	made, err := s.makeToken(c, r)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, made)
}

// makeToken makes a token in the name of whoever asks.
func (s *Server) makeToken(c echo.Context, r TokenRequest) (TokenCreated, error) {
	scopes, err := access.ParseScopes(strings.Join(r.Scopes, " "))
	if err != nil {
		return TokenCreated{}, fieldError(http.StatusUnprocessableEntity, "scopes", "%s", sentence(err.Error()))
	}
	t := access.Token{Name: r.Name, Scopes: scopes, Types: r.Types, CreatedBy: who(c).Name}
	if r.ExpiresIn != "" {
		life, err := time.ParseDuration(r.ExpiresIn)
		if err != nil || life <= 0 {
			return TokenCreated{}, fieldError(http.StatusUnprocessableEntity, "expires_in", "expires_in is a length like 720h, not %q.", clip(r.ExpiresIn, 40))
		}
		t.ExpiresAt = s.cfg.Now().Add(life)
	}
	for _, jobType := range r.Types {
		if !s.known(jobType) {
			return TokenCreated{}, fieldError(http.StatusUnprocessableEntity, "types", "There is no type %q here.", clip(jobType, 60))
		}
	}
	t, secret, err := s.cfg.Gate.Store.CreateToken(c.Request().Context(), t)
	if err != nil {
		return TokenCreated{}, err
	}
	setAuditTarget(c, t.ID, fmt.Sprintf("%s: %s %v", t.Name, t.Scopes, t.Types))
	return TokenCreated{t, secret}, nil
}

func (s *Server) revokeToken(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Gate.Store.RevokeToken(c.Request().Context(), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) listAuditEntries(c echo.Context) error {
	f := access.AuditFilter{Actor: clip(c.QueryParam("actor"), 191), Action: clip(c.QueryParam("action"), 191), Target: clip(c.QueryParam("target"), 191)}
	var err error
	if f.Since, err = ops.ParseTime(c.QueryParam("since"), "since", s.cfg.Now()); err != nil {
		return err
	}
	if f.Until, err = ops.ParseTime(c.QueryParam("until"), "until", s.cfg.Now()); err != nil {
		return err
	}
	return answerList(s, c, "the audit trail", same, func(p jobs.Page) (jobs.List[AuditEntry], error) {
		return s.cfg.Gate.Store.AuditEntries(c.Request().Context(), f, p)
	})
}

// auditEntry writes one line of the trail for something that is no change.
func (s *Server) auditEntry(c echo.Context, action, target string) {
	p := who(c)
	err := s.cfg.Gate.Store.Record(context.WithoutCancel(c.Request().Context()), access.AuditEntry{Actor: p.Name, Via: p.Via, Address: c.RealIP(), Action: action, Target: target, Status: http.StatusOK})
	if err != nil {
		s.cfg.Log.Error("audit entry not written", "event", "audit.write_failed",
			"actor", p.Name, "action", action, "target", target, "error", err)
	}
}
