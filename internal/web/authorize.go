package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// The rules that open routes beyond the scopes of tokens.
const (
	ruleScope  = ""
	rulePublic = "true"
	ruleKnown  = "@request.auth.id != ''"
)

func knownRule(rule string) bool {
	return rule == ruleScope || rule == rulePublic || strings.ReplaceAll(rule, `"`, `'`) == ruleKnown
}

// passes says whether a rule lets a principal in whose scopes do not.
func passes(rule string, p access.Principal) bool {
	switch strings.ReplaceAll(rule, `"`, `'`) {
	case rulePublic:
		return true
	case ruleKnown:
		return p.Known()
	}
	return false
}

const (
	principalKey = "principal"
	sessionKey   = "session"
	targetKey    = "target"
	detailKey    = "detail"
)

// who is the request's principal; the zero one before guard looked.
func who(c echo.Context) access.Principal {
	p, _ := c.Get(principalKey).(access.Principal)
	return p
}

// setAuditTarget notes for the audit log what a request is about, in words.
func setAuditTarget(c echo.Context, target, detail string) {
	c.Set(targetKey, target)
	if detail != "" {
		c.Set(detailKey, detail)
	}
}

// authorize guards every route: who asks, may they, within limits. What they
// changed goes into the audit log.
func (s *Server) authorize(r Route) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		if whole := c.Request(); !r.Stream {
			ctx, cancel := context.WithTimeout(whole.Context(), s.cfg.Timeout)
			defer cancel()
			c.SetRequest(whole.WithContext(ctx))
			defer c.SetRequest(whole)
		}
		c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, s.cfg.BodyLimit)
		if r.changes() {
			defer func() { err = s.recordAudit(c, r, err) }()
		}
		if err := s.checkAccess(c, r); err != nil {
			return err
		}
		if s.missing[r.Needs] {
			return notConfigured(r.Needs)
		}
		return r.serve(s, c)
	}
}

func (s *Server) checkAccess(c echo.Context, r Route) error {
	if quiet(r.Path) && r.Scope == "" {
		return nil // a probe's stale credentials do not matter
	}
	p, err := s.principal(c, r)
	if err != nil {
		return err
	}
	c.Set(principalKey, p)
	if r.changes() {
		if err := s.sameOrigin(c, p); err != nil {
			return err
		}
	}
	if s.may(p, r) {
		return nil
	}
	if !p.Known() {
		askForCredentials(c)
		return httpError(http.StatusUnauthorized, "Send a token (Authorization: Bearer …), name and password "+
			"(Basic), or sign in.")
	}
	return httpError(http.StatusForbidden, "This needs the scope %q; %s has %q.", r.Scope, p.Name, p.Scopes)
}

// principal finds who asks, within the limits of their rate.
func (s *Server) principal(c echo.Context, r Route) (access.Principal, error) {
	network := access.Network(c.RealIP())
	if !quiet(r.Path) && c.Request().Header.Get(echo.HeaderAuthorization) != "" {
		if err := s.rates.spent("address " + network); err != nil {
			return access.Principal{}, err // before credentials cost anything
		}
	}
	p, err := s.identify(c)
	if err != nil && s.problemOf(err).Status >= http.StatusInternalServerError {
		return p, err // our fault: it counts for nobody
	}
	if !quiet(r.Path) { // wrong credentials count for their address
		if err := s.rates.refuse(caller(p, network)); err != nil {
			return p, err
		}
	}
	if err != nil {
		if errors.Is(err, access.ErrRefused) {
			askForCredentials(c)
		}
		return p, err
	}
	return p, nil
}

// may says whether a principal may use a route.
func (s *Server) may(p access.Principal, r Route) bool {
	if r.Scope == "" || p.Scopes.Has(r.Scope) {
		return true
	}
	switch {
	case r.Path == "/metrics":
		return s.cfg.PublicMetrics
	case r.Scope == access.Enqueue:
		return passes(s.cfg.EnqueueRule, p)
	case r.Managed:
		return passes(s.cfg.ManageRule, p)
	}
	return false
}

func askForCredentials(c echo.Context) {
	h := c.Response().Header()
	h.Add(echo.HeaderWWWAuthenticate, `Bearer realm="cmsjobs"`)
	if isPage(c) {
		return // shows the sign-in form, not the browser's dialogue
	}
	if _, err := c.Cookie(cookieName(c)); err != nil { // a page shows its own form
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
	cookie, err := c.Cookie(cookieName(c))
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

// formTokenHeader and formTokenField carry access.FormToken of the session.
const (
	formTokenHeader = "X-CSRF-Token"
	formTokenField  = "_csrf"
)

// sameOrigin refuses changes that another site makes a browser send. A bearer
// token is not sent by a browser by itself and needs no form token.
func (s *Server) sameOrigin(c echo.Context, p access.Principal) error {
	if strings.HasPrefix(p.Via, "token") {
		return nil
	}
	if err := s.origin.Check(c.Request()); err != nil {
		return httpError(http.StatusForbidden, "This request comes from another site and is refused.")
	}
	session, _ := c.Get(sessionKey).(string)
	if p.Via != "session" {
		return nil
	}
	given := c.Request().Header.Get(formTokenHeader)
	if given == "" && strings.HasPrefix(c.Request().Header.Get(echo.HeaderContentType), echo.MIMEApplicationForm) {
		given = c.FormValue(formTokenField)
	}
	if !equal(given, access.FormToken(session)) {
		return httpError(http.StatusForbidden, "The form is too old or not ours (%s). Load the page again.",
			formTokenHeader)
	}
	return nil
}

// auditTimeout is how long an entry may wait for a busy database: longer than a
// request may, as a lost entry is a hole in the audit log.
const auditTimeout = time.Minute

// recordAudit records who changed what, or was refused. An entry that cannot
// be written goes to the log as an error with all that it would have said.
func (s *Server) recordAudit(c echo.Context, r Route, outcome error) error {
	s.answers.Forget() // the caller who changed something sees it
	status := c.Response().Status
	detail, _ := c.Get(detailKey).(string)
	if outcome != nil {
		p := s.problemOf(outcome)
		status = p.Status
		detail = strings.TrimSpace(detail + " " + p.Detail)
	}
	if status == http.StatusTooManyRequests || status == http.StatusUnauthorized && r.Name != "session.create" {
		return outcome // nobody was let in, nothing was touched: a flood must not fill the audit log, too
	}
	target, _ := c.Get(targetKey).(string)
	if target == "" {
		target = strings.Join(c.ParamValues(), " ")
	}
	p := who(c)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), auditTimeout)
	defer cancel()
	record := s.cfg.Gate.Store.Record
	if outcome != nil && !p.Known() {
		record = s.failures.Record // of strangers, who may try without end
	}
	err := record(ctx, access.AuditEntry{Actor: p.Name, Via: p.Via, Address: c.RealIP(), Action: r.Name,
		Target: target, Status: status, Detail: detail})
	if err == nil {
		return outcome
	}
	s.cfg.Log.Error("audit entry not written", "event", "audit.write_failed",
		"actor", p.Name, "action", r.Name, "target", target, "status", status, "error", err)
	return outcome
}

// auditEntry writes one entry of the audit log for something that is no change.
func (s *Server) auditEntry(c echo.Context, action, target string) {
	p := who(c)
	err := s.cfg.Gate.Store.Record(context.WithoutCancel(c.Request().Context()), access.AuditEntry{
		Actor: p.Name, Via: p.Via, Address: c.RealIP(), Action: action, Target: target, Status: http.StatusOK})
	if err != nil {
		s.cfg.Log.Error("audit entry not written", "event", "audit.write_failed",
			"actor", p.Name, "action", action, "target", target, "error", err)
	}
}

// auditedActions are the names of actions that the audit log can have.
func (s *Server) auditedActions() []string {
	seen := map[string]bool{"backups.download": true, "failed.export": true, "job_enqueued": true, "job_failed": true}
	for _, r := range s.routes {
		if r.changes() {
			seen[r.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func stack() []byte { return debug.Stack() }
