package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// effects is the rule of this installation for who may make jobs run. All that
// makes one run asks mayEnqueue, mayRun or runnable: at the place of the
// effect, behind the route's own scope.
func effects(c Config) access.Effects {
	return access.Effects{
		Open:  func(p access.Principal) bool { return passes(c.EnqueueRule, p) },
		Kinds: c.AllowedTopics, AdminKinds: c.AdminKinds, OperatorKinds: c.OperatorKinds,
		Maker: func(kind string) jobs.Maker {
			entry, _ := c.Registry.Lookup(kind)
			return entry.Maker
		},
	}
}

// mayEnqueue refuses a new job of a kind that the caller may not make.
func (s *Server) mayEnqueue(c echo.Context, kind string) error {
	return denied(s.effects.MayEnqueue(who(c), kind))
}

// mayRun refuses to make a job run that is there already.
func (s *Server) mayRun(c echo.Context, kind string) error {
	if entry, known := s.cfg.Registry.Lookup(kind); known {
		kind = entry.Kind
	}
	return denied(s.effects.MayRun(who(c), kind))
}

// denied tells people why the rule says no; nil stays nil.
func denied(err error) error {
	var d access.DeniedError
	if !errors.As(err, &d) {
		return err
	}
	switch d.Reason {
	case access.OtherKinds:
		return refuse(http.StatusForbidden, "This token may not make jobs of %q run, only of %q.", clip(d.Kind, 80), d.Who.Kinds)
	case access.NotOffered:
		return refuse(http.StatusForbidden, "%q may not be enqueued over HTTP (allowed_topics).", clip(d.Kind, 80))
	case access.AdminsOnly:
		return refuse(http.StatusForbidden, "%q is for administrators.", clip(d.Kind, 80))
	case access.ServiceItself:
		return refuse(http.StatusForbidden, "Jobs of %q are made by the service itself: nobody enqueues them.", clip(d.Kind, 80))
	case access.NoScope:
	}
	return refuse(http.StatusForbidden, "Whoever makes a job run needs the scope %q; %s has %q.", access.Enqueue, d.Who.Name, d.Who.Scopes)
}

// runnable narrows a filter to the jobs that the caller may make run.
func (s *Server) runnable(c echo.Context, f jobs.Filter) (narrowed runnableJobs, err error) {
	only, except, err := s.effects.Runnable(who(c), s.cfg.Registry.Kinds())
	if err != nil {
		return runnableJobs{}, denied(err)
	}
	return narrow(f, only, except), nil
}

// runnableJobs is what of a filter somebody may make run.
type runnableJobs struct {
	jobs.Filter
	Only, Except []string // that narrowed it; see access.Effects.Runnable
	None         bool     // nothing of it
}

// Whole says that nothing was left out.
func (r runnableJobs) Whole() bool { return r.Only == nil && len(r.Except) == 0 }

// narrow takes the kinds out of a filter that are not among only, where that is
// not nil, and those of except.
func narrow(f jobs.Filter, only, except []string) runnableJobs {
	r := runnableJobs{Filter: f, Only: only, Except: except}
	r.ExceptKinds = slices.Concat(f.ExceptKinds, except)
	switch {
	case only == nil:
	case len(f.Kinds) == 0:
		r.Kinds, r.None = only, len(only) == 0
	default:
		r.Kinds = slices.DeleteFunc(slices.Clone(f.Kinds), func(k string) bool { return !slices.Contains(only, k) })
		r.None = len(r.Kinds) == 0
	}
	return r
}

// again checks that a job which ended may be enqueued once more, and with what.
func (s *Server) again(r jobs.Record) (jobs.New, error) {
	envelope, origin, err := jobs.Parse(r.Payload, s.known)
	if origin != jobs.Ours {
		return jobs.New{}, refuse(http.StatusConflict, "The job cannot run again: %v.", err)
	}
	entry, _ := s.cfg.Registry.Lookup(envelope.Kind)
	if entry.Maker == jobs.Anyone {
		if err := entry.Check(envelope.Data); err != nil {
			return jobs.New{}, refuse(http.StatusConflict, "The job cannot run again, its payload is not kept or no longer fits: %s", sentence(fmt.Sprint(err)))
		}
	}
	return jobs.New{Kind: entry.Kind, Queue: r.Queue, Data: envelope.Data, Metadata: envelope.Metadata, Priority: r.Priority}, nil
}
