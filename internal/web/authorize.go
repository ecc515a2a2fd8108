package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// authorize guards every route: who asks, may they, within limits. What they
// changed goes into the audit log.
func (s *Server) authorize(r Route) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		if whole := c.Request(); !r.Stream {
			ctx, cancel := context.WithTimeout(whole.Context(), s.cfg.Timeout)
			defer cancel()
			c.SetRequest(whole.WithContext(ctx))
			defer func() {
				whole.PostForm = c.Request().PostForm // the page of a refusal leads back to where the form was
				c.SetRequest(whole)
			}()
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
		s.askForCredentials(c)
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
			s.askForCredentials(c)
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
	seen := map[string]bool{"backups.download": true, "failed.export": true, "jobs.export": true,
		"runs.export": true, "job_enqueued": true, "job_failed": true}
	for _, r := range s.routes {
		if r.changes() {
			seen[r.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// quiet paths are asked every few seconds by machines: no line in the log.
func quiet(path string) bool {
	switch path {
	case "/healthz", "/livez", "/readyz", "/metrics":
		return true
	}
	return false
}

// serve answers a request that may be answered.
func (r Route) serve(s *Server, c echo.Context) error {
	if r.Handle == nil {
		return r.handle(s, c)
	}
	if r.Page && !r.changes() {
		c.SetRequest(c.Request().WithContext(s.answers.WithPatience(c.Request().Context())))
		s.noteState(c)
	}
	if r.Page && r.changes() && isForm(c) {
		if late, err := s.serveUndo(c); late || err != nil {
			return err
		}
	}
	return r.Handle(&Request{c, s})
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
