package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Effects is the one rule for who may make a job run, in whatever way: by
// enqueuing it, running it again or now, retrying it alone or with others,
// running or changing a schedule entry, sending a mail or a webhook again. It
// takes the principal, the type and the payload. Routes ask for a scope besides.
type Effects struct {
	// Open lets principals enqueue who lack the scope; nil lets nobody.
	Open func(Principal) bool
	// Types that others than administrators may make run; empty means any.
	Types []string
	// AdminKinds are types that only administrators may make run.
	AdminKinds []string
	// Maker says who makes jobs of a type; Anyone for one that is not ours.
	Maker func(jobType string) jobs.Maker
	// OperatorKinds are those of jobs.Service that operators may run again;
	// the others only administrators may.
	OperatorKinds []string
	// Payloads knows what payloads are refused, and which fields of them only
	// administrators may set; nil knows nothing.
	Payloads Payloads
}

// Payloads judges payloads; *jobs.Registry does.
type Payloads interface {
	// CheckPayload says why nobody may enqueue data as a payload of type.
	CheckPayload(jobType string, data json.RawMessage) error
	// CheckNewPayload is CheckPayload for one that is written now: fields that the
	// type does not have are refused, too.
	CheckNewPayload(jobType string, data json.RawMessage) error
	// ReservedFields are the fields of data that only administrators may set.
	ReservedFields(jobType string, data json.RawMessage) []string
}

// Reason is why an effect is denied.
type Reason string

// The reasons.
const (
	NoScope       Reason = "scope"         // the principal may not enqueue at all
	OtherKinds    Reason = "token types"   // the token is for other types
	NotOffered    Reason = "allowed types" // the configuration does not allow the type over HTTP
	AdminsOnly    Reason = "administrators"
	ServiceItself Reason = "service" // only the service makes such jobs
	Reserved      Reason = "fields"  // the payload sets what only administrators may
)

// DeniedError says that a principal may not make a job of a type run.
type DeniedError struct {
	Reason Reason
	Type   string // "" where others than one type's jobs would run
	Who    Principal
	Fields []string // of Reserved
}

// Error implements error.
func (e DeniedError) Error() string {
	return fmt.Sprintf("%s may not make a job of %s run (%s)", e.Who.Name, e.Type, e.Reason)
}

// PayloadError says that a payload is refused to every caller.
type PayloadError struct{ Err error }

// Error implements error.
func (e PayloadError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e PayloadError) Unwrap() error { return e.Err }

// MayEnqueue says whether p may make a new job of a type with this payload. The
// type is a registered name, not an alias. The error is a DeniedError or a
// PayloadError.
func (e Effects) MayEnqueue(p Principal, jobType string, data json.RawMessage) error {
	if e.Maker != nil && e.Maker(jobType) == jobs.Service {
		return DeniedError{Reason: ServiceItself, Type: jobType, Who: p}
	}
	return e.MayRunNew(p, jobType, data)
}

// MayRunNew is MayRun with a payload that p writes now.
func (e Effects) MayRunNew(p Principal, jobType string, data json.RawMessage) error {
	if err := e.MayRunKind(p, jobType); err != nil || e.Payloads == nil {
		return err
	}
	if err := e.Payloads.CheckNewPayload(jobType, data); err != nil {
		return PayloadError{err}
	}
	return e.MayRun(p, jobType, data)
}

// MayRun says whether p may make an existing job of a type run: again, now, or
// with its schedule. It is MayEnqueue, except that jobs which the service made
// may be run again by those who answer for them.
func (e Effects) MayRun(p Principal, jobType string, data json.RawMessage) error {
	if err := e.MayRunKind(p, jobType); err != nil || e.Payloads == nil {
		return err
	}
	if err := e.Payloads.CheckPayload(jobType, data); err != nil {
		return PayloadError{err}
	}
	if fields := e.Payloads.ReservedFields(jobType, data); len(fields) > 0 && !p.Scopes.Has(Admin) {
		return DeniedError{Reason: Reserved, Type: jobType, Who: p, Fields: fields}
	}
	return nil
}

// MayRunKind is MayRun as far as the type alone decides it: for jobs whose
// payload the service chooses, and before there is one.
func (e Effects) MayRunKind(p Principal, jobType string) error {
	admin := p.Scopes.Has(Admin)
	maker := jobs.Anyone
	if e.Maker != nil {
		maker = e.Maker(jobType)
	}
	switch {
	case !p.Scopes.Has(Enqueue) && (e.Open == nil || !e.Open(p)):
		return DeniedError{Reason: NoScope, Type: jobType, Who: p}
	case len(p.Types) > 0 && !slices.Contains(p.Types, jobType):
		return DeniedError{Reason: OtherKinds, Type: jobType, Who: p}
	case admin:
		return nil
	case maker == jobs.Service && slices.Contains(e.OperatorKinds, jobType):
		if !p.Scopes.Has(Operate) {
			return DeniedError{Reason: NoScope, Type: jobType, Who: p}
		}
		return nil
	case maker != jobs.Anyone, slices.Contains(e.AdminKinds, jobType):
		return DeniedError{Reason: AdminsOnly, Type: jobType, Who: p}
	case len(e.Types) > 0 && !slices.Contains(e.Types, jobType):
		return DeniedError{Reason: NotOffered, Type: jobType, Who: p}
	}
	return nil
}

// MayWork says whether p may let work go on whatever it is: one round of the
// schedule and the queue, or a queue that was paused. It makes nothing due that
// is not, and those who enqueued it were asked, so the route's scope is enough;
// but not for a principal that is limited to types, as jobs of others would run.
func (e Effects) MayWork(p Principal) error {
	if len(p.Types) > 0 {
		return DeniedError{Reason: OtherKinds, Who: p}
	}
	return nil
}

// Runnable is which of the known types p may make run. Where p is limited to
// types, they are only; where p is not, except are those that p may not. err is
// a DeniedError where p may run nothing at all.
func (e Effects) Runnable(p Principal, known []string) (only, except []string, err error) {
	if err := e.MayRunKind(p, ""); err != nil {
		if denied := (DeniedError{}); errors.As(err, &denied) && denied.Reason == NoScope {
			return nil, nil, err
		}
	}
	limited := len(p.Types) > 0 || len(e.Types) > 0 && !p.Scopes.Has(Admin)
	only = []string{}
	for _, jobType := range known {
		switch may := e.MayRunKind(p, jobType) == nil; {
		case may && limited:
			only = append(only, jobType)
		case !may && !limited:
			except = append(except, jobType)
		}
	}
	if !limited {
		only = nil
	}
	return only, except, nil
}
