package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/schema"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// mayRun refuses to make a job run with a payload that is there already.
func (s *Server) mayRun(c echo.Context, jobType string, data json.RawMessage) error {
	return denied(s.effects.MayRun(who(c), s.canonical(jobType), data))
}

// mayRunKind is mayRun where the service itself chooses the payload.
func (s *Server) mayRunKind(c echo.Context, jobType string) error {
	return denied(s.effects.MayRunKind(who(c), s.canonical(jobType)))
}

// mayRunAgain is mayRun for a job that is there: a row, whichever program wrote it.
func (s *Server) mayRunAgain(c echo.Context, r jobs.Record) error {
	if err := s.mayRunKind(c, r.Type); err != nil {
		return err
	}
	if err := ops.PayloadKept(r); err != nil {
		return err
	}
	data, checked, err := rowPayload(s.cfg.Registry, r)
	if err == nil && checked {
		err = s.effects.MayRun(who(c), s.canonical(r.Type), data)
	}
	if d := (access.DeniedError{}); err == nil || errors.As(err, &d) {
		return denied(err)
	}
	return httpError(http.StatusConflict, "The job cannot run again, its payload is not kept or no longer fits: %s",
		Spoken{err})
}

func (s *Server) canonical(jobType string) string {
	if entry, known := s.cfg.Registry.Lookup(jobType); known {
		return entry.Type
	}
	return jobType
}

// rowPayload is what a row's job would run with. It is checked only where the
// type is ours: PHP's own jobs, and those of other programs that share the
// table, are checked by the program that runs them, and the scope to operate is the
// right to retry those.
func rowPayload(registry *jobs.Registry, r jobs.Record) (data json.RawMessage, checked bool, err error) {
	known := func(name string) bool { _, known := registry.Known(name); return known }
	envelope, origin, err := jobs.Parse(r.Payload, known)
	switch origin {
	case jobs.Ours:
		return envelope.Data, true, nil
	case jobs.Malformed:
		return nil, false, err
	default:
		return nil, false, nil
	}
}

// AllowRows allows the rows whose payload an administrator, or anyone else, may
// make run, and remembers those that it refused. Their types are narrowed by
// the filter.
func AllowRows(registry *jobs.Registry, admin bool) (allow func(jobs.Record) bool, refused map[int64]bool) {
	refused = map[int64]bool{}
	p, rule := access.Principal{Scopes: access.Operator.Scopes()}, access.Effects{Payloads: registry}
	if admin {
		p.Scopes = access.Administrator.Scopes()
	}
	return func(r jobs.Record) bool {
		data, checked, err := rowPayload(registry, r)
		if err == nil && checked {
			err = rule.MayRun(p, r.Type, data)
		}
		if err != nil {
			refused[r.ID] = true
		}
		return err == nil
	}, refused
}

// denied tells people why the rule says no; nil stays nil.
func denied(err error) error {
	var refused access.PayloadError
	if errors.As(err, &refused) {
		status := http.StatusUnprocessableEntity
		if errors.Is(err, jobs.ErrTooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		if unknown := (schema.UnknownError{}); errors.As(err, &unknown) {
			return unknownFields(unknown)
		}
		return fieldError(status, "payload", "%s", Spoken{refused.Err})
	}
	var d access.DeniedError
	if !errors.As(err, &d) {
		return err
	}
	switch d.Reason {
	case access.OtherKinds:
		if d.Type == "" {
			return httpError(http.StatusForbidden, "This token makes jobs of %q run only; this would let others run, "+
				"too.", d.Who.Types)
		}
		return httpError(http.StatusForbidden, "This token may not make jobs of %q run, only of %q.",
			redact.Clip(d.Type, 80),
			d.Who.Types)
	case access.NotOffered:
		return httpError(http.StatusForbidden, "%q may not be enqueued over HTTP (allowed_types).",
			redact.Clip(d.Type, 80))
	case access.AdminsOnly:
		return httpError(http.StatusForbidden, "%q is for administrators.", redact.Clip(d.Type, 80))
	case access.ServiceItself:
		return httpError(http.StatusForbidden, "Jobs of %q are made by the service itself: nobody enqueues them.",
			redact.Clip(d.Type, 80))
	case access.Reserved:
		return httpError(http.StatusForbidden, "Only administrators may set %s in a payload of %s.",
			strings.Join(d.Fields, ", "), redact.Clip(d.Type, 80))
	case access.NoScope:
	}
	return httpError(http.StatusForbidden, "Making a job run needs the scope %q; %s has %q.", access.Enqueue,
		d.Who.Name, d.Who.Scopes)
}

// unknownFields refuses fields that a type does not have. It names each, and says
// of the first in the caller's language what to write instead.
func unknownFields(e schema.UnknownError) *Problem {
	first := e.Fields[0]
	var p *Problem
	switch name := redact.Clip(first.Name, 60); {
	case first.Suggestion != "":
		p = httpError(http.StatusUnprocessableEntity, "The payload of %s has no field %q; did you mean %q?", e.Type,
			name, first.Suggestion)
	case len(e.Known) == 0:
		p = httpError(http.StatusUnprocessableEntity, "The payload of %s has no field %q; it has no fields.", e.Type,
			name)
	default:
		p = httpError(http.StatusUnprocessableEntity, "The payload of %s has no field %q; its fields are %s.", e.Type,
			name, strings.Join(e.Known, ", "))
	}
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, FieldProblem{"payload." + redact.Clip(f.Name, 60), Sentence(e.Text(f))})
	}
	return p
}

// runnable narrows a filter to the jobs that the caller may make run.
func (s *Server) runnable(c echo.Context, f jobs.Filter) (narrowed RunnableJobs, err error) {
	only, except, err := s.effects.Runnable(who(c), s.cfg.Registry.KnownTypes())
	if err != nil {
		return RunnableJobs{}, denied(err)
	}
	return Narrow(f, only, except), nil
}

// RunnableJobs is what of a filter somebody may make run.
type RunnableJobs struct {
	jobs.Filter
	Only, Except []string // that narrowed it; see access.Effects.Runnable
	None         bool     // nothing of it
}

// Whole says that nothing was left out.
func (r RunnableJobs) Whole() bool { return r.Only == nil && len(r.Except) == 0 }

// Narrow takes the types out of a filter that are not among only, where that is
// not nil, and those of except.
func Narrow(f jobs.Filter, only, except []string) RunnableJobs {
	r := RunnableJobs{Filter: f, Only: only, Except: except}
	r.ExceptKinds = slices.Concat(f.ExceptKinds, except)
	switch {
	case only == nil:
	case len(f.Types) == 0:
		r.Types, r.None = only, len(only) == 0
	default:
		r.Types = slices.DeleteFunc(slices.Clone(f.Types), func(k string) bool { return !slices.Contains(only, k) })
		r.None = len(r.Types) == 0
	}
	return r
}
