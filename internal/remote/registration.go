package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
)

// Registration is what a program says of itself.
type Registration struct {
	// Name is shown on the page of workers: what the program is and where it runs.
	Name string
	// Version of the program.
	Version string
	// Slots is how many jobs it runs at once: 1 to 100.
	Slots int
	// Lease is how long it may be silent: 5 s to 10 min; 0 is DefaultLease.
	Lease time.Duration
	Types []Type
	// Allowed are the only types that it may register; empty means any.
	Allowed []string
}

// Type is a type that a program runs.
type Type struct {
	Name, Title, Queue string
	// Schema of the payload; nil takes every object.
	Schema json.RawMessage
	// The policy of its jobs; 0 and nil are the defaults of jobs.DefaultPolicy.
	MaxAttempts int
	Timeout     time.Duration
	Backoff     []time.Duration
	// Limit is how many may run at once in the whole fleet; 0 is any number.
	Limit int
	// Rates are how many may begin in each length of time, as jobs.ParseRate reads them.
	Rates []string
}

// The bounds of a registration.
const (
	DefaultLease = 30 * time.Second
	minLease     = 5 * time.Second
	maxLease     = 10 * time.Minute
	maxSlots     = 100
	maxTypes     = 50
	maxTimeout   = 24 * time.Hour
	maxSessions  = 100
)

func invalid(form string, args ...any) error {
	return fmt.Errorf("%w: %s", jobs.ErrInvalid, fmt.Sprintf(form, args...))
}

// check completes a registration, or says what is wrong with it. ours says whether
// a type is the service's.
func (r *Registration) check(ours func(string) bool) error {
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	r.Name, r.Version = jobs.PlainText(r.Name, 100), jobs.PlainText(r.Version, 60)
	switch {
	case r.Name == "":
		return invalid("a worker needs a name that says what it is, such as shop@web-1")
	case r.Slots < 1 || r.Slots > maxSlots:
		return invalid("slots is how many jobs run at once, from 1 to %d", maxSlots)
	case r.Lease < minLease || r.Lease > maxLease:
		return invalid("lease is from %d to %d seconds", int(minLease.Seconds()), int(maxLease.Seconds()))
	case len(r.Types) == 0 || len(r.Types) > maxTypes:
		return invalid("a worker runs 1 to %d types, not %d", maxTypes, len(r.Types))
	}
	seen := map[string]bool{}
	for _, t := range r.Types {
		switch {
		case ours(t.Name):
			return invalid("%s is a type of the service: choose another name", t.Name)
		case seen[t.Name]:
			return invalid("the type %s is there twice", jobs.PlainText(t.Name, 60))
		case len(r.Allowed) > 0 && !slices.Contains(r.Allowed, t.Name):
			return invalid("this token is for other types than %s", jobs.PlainText(t.Name, 60))
		}
		seen[t.Name] = true
		if err := t.check(); err != nil {
			return err
		}
	}
	return nil
}

func (t Type) check() error {
	if err := jobs.CheckQueue(t.Queue); t.Queue != "" && err != nil {
		return invalid("the queue of %s: %v", jobs.PlainText(t.Name, 60), err)
	}
	switch {
	case t.MaxAttempts < 0 || t.MaxAttempts > 255:
		return invalid("max_attempts of %s is from 1 to 255", t.Name)
	case t.Timeout < 0 || t.Timeout > maxTimeout:
		return invalid("timeout of %s is from 1 second to a day", t.Name)
	case t.Limit < 0 || t.Limit > 1000:
		return invalid("limit of %s is from 1 to 1000", t.Name)
	case len(t.Backoff) > 50:
		return invalid("backoff of %s has at most 50 steps", t.Name)
	}
	for _, d := range t.Backoff {
		if d < 0 || d > maxTimeout {
			return invalid("a step of the backoff of %s is from 0 seconds to a day", t.Name)
		}
	}
	if err := t.checkRates(); err != nil {
		return err
	}
	_, err := t.announced().Entry()
	return err
}

func (t Type) checkRates() error {
	if len(t.Rates) > 10 {
		return invalid("rate of %s has at most 10 entries", t.Name)
	}
	if _, err := jobs.ParseRates(t.Rates); err != nil {
		return invalid("rate of %s: %v", t.Name, jobs.PlainText(err.Error(), 200))
	}
	return nil
}

// announced is the type as other processes see it.
func (t Type) announced() announce.Type {
	p := jobs.Policy{MaxAttempts: t.MaxAttempts, Timeout: t.Timeout, Limit: t.Limit}
	p.Rates, _ = jobs.ParseRates(t.Rates) // check refuses what cannot be read
	if len(t.Backoff) > 0 {
		p.Backoff = jobs.Steps(t.Backoff...)
	}
	return announce.Type{Name: t.Name, Title: t.Title, Queue: t.Queue, Schema: t.Schema, Policy: p}
}
