package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Kind is one type and the type of its payload. One declaration serves
// to register its handler, to enqueue it and to schedule it.
type Kind[P any] struct {
	// Name is "area.verb", e.g. "sitemap.generate".
	Name string
	// Queue is where Of puts jobs of this type; "" means the store's default.
	Queue  string
	Policy Policy
}

// Policy says how runs of a type are limited and repeated. Zero fields mean
// the defaults of DefaultPolicy.
type Policy struct {
	// MaxAttempts counts starts. A row's own limit may be lower, not higher.
	MaxAttempts int
	// Timeout of one run, after which its context is cancelled. A row's own may be
	// shorter, not longer.
	Timeout time.Duration
	// Backoff is the wait after a failed run.
	Backoff Backoff
	// Limit is how many jobs of the type may run at once in the whole fleet;
	// 0 means as many as there are slots.
	Limit int
	// Coalesce makes one run stand for all waiting jobs of the type whose data
	// is equal and that are due.
	Coalesce bool
	// Confidential keeps the data of jobs out of the history unless they fail: it
	// holds what only the job needed to know, such as a mail's text.
	Confidential bool
	// MaxAge is how long after its due time a job is still worth running; older
	// ones are completed unrun with a result that says so. 0 means for ever.
	MaxAge time.Duration
}

// DefaultPolicy holds what a type gets for what it does not say: 3 attempts,
// 60·2^(n−1) seconds up to an hour between them, 300 s a run.
func DefaultPolicy() Policy {
	return Policy{
		MaxAttempts: 3,
		Timeout:     300 * time.Second,
		Backoff:     Exponential(60*time.Second, time.Hour),
	}
}

// Attempts is how often a job may start whose row says so itself: rows come from
// others and narrow the type's limit only. What is not above 0 says nothing.
func (p Policy) Attempts(rows ...int) int {
	limit := p.MaxAttempts
	for _, row := range rows {
		if row > 0 {
			limit = min(limit, row)
		}
	}
	return limit
}

// RunTimeout is how long a run may take whose row says so itself: never longer
// than the type's; 0 says nothing.
func (p Policy) RunTimeout(row time.Duration) time.Duration {
	if row > 0 {
		return min(row, p.Timeout)
	}
	return p.Timeout
}

func (p Policy) withDefaults() Policy {
	d := DefaultPolicy()
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = d.MaxAttempts
	}
	if p.Timeout <= 0 {
		p.Timeout = d.Timeout
	}
	if p.Backoff == nil {
		p.Backoff = d.Backoff
	}
	return p
}

// New makes a job of this type, to be enqueued. An error of encoding the
// payload is kept and returned by Enqueue.
func (k Kind[P]) New(payload P) Spec {
	data, err := json.Marshal(payload)
	if err != nil {
		err = fmt.Errorf("encoding the payload of %s: %w", k.Name, err)
	}
	return Spec{Type: k.Name, Queue: k.Queue, Data: data, err: err}
}

// Validator is implemented by payloads that can say what is wrong with
// themselves. What it returns fails the job: repeating would not fix it.
type Validator interface{ Validate() error }

// Handle registers fn to run jobs of type k. It panics when the type has a
// handler already, as that is a mistake of the program, seen at its start.
func Handle[P any](r *Registry, k Kind[P], fn func(context.Context, Job, P) error) {
	run := func(ctx context.Context, j Job) error {
		payload, err := decode[P](j)
		if err != nil {
			return err
		}
		// The last look at the lease: the process may have been paused on the way here.
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(ctx, j, payload)
	}
	check := func(data json.RawMessage) error {
		_, err := decode[P](Job{Type: k.Name, Data: data})
		return err
	}
	r.add(Entry{Type: k.Name, Queue: k.Queue, Policy: k.Policy.withDefaults(), Run: run, Check: check,
		Example: example[P]()})
}

// example is the payload's zero value as JSON, which shows its fields.
func example[P any]() json.RawMessage {
	var zero P
	data, err := json.Marshal(zero)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

func decode[P any](j Job) (P, error) {
	var payload P
	data := j.Data
	if emptyJSON(data) {
		data = json.RawMessage("{}")
	}
	if err := json.Unmarshal(data, &payload); err != nil {
		return payload, Permanent(fmt.Errorf("the payload of %s is not as this type needs it: %w", j.Type, err))
	}
	if v, ok := any(&payload).(Validator); ok {
		if err := v.Validate(); err != nil {
			return payload, Permanent(fmt.Errorf("the payload of %s is refused: %w", j.Type, err))
		}
	}
	return payload, nil
}

// emptyJSON knows the ways in which PHP writes "nothing": [], "", null.
func emptyJSON(data json.RawMessage) bool {
	if len(data) > 0 && data[0] == '{' {
		return false
	}
	switch string(bytes.TrimSpace(data)) {
	case "", "[]", `""`, "null":
		return true
	}
	return false
}

// Entry is a registered type, its payload's type erased.
type Entry struct {
	Type   string
	Queue  string
	Policy Policy
	// Run decodes the job's data and runs the handler.
	Run func(context.Context, Job) error
	// Check reads data only: a nil error means that the handler would take it.
	Check func(data json.RawMessage) error
	// Reserved names the fields of data that only administrators may set over HTTP;
	// nil where there are none. See Restriction.
	Reserved func(data json.RawMessage) []string
	// Example is the payload with zero values, for forms and documents.
	Example json.RawMessage
	// Maker says who may make such jobs. All but Anyone carry orders.
	Maker Maker
}

// Registry knows which types can run here. It is filled at start and read from
// then on; filling it while it is read is not safe.
type Registry struct {
	entries map[string]Entry
	aliases map[string]string
}

// NewRegistry returns a registry without types.
func NewRegistry() *Registry {
	return &Registry{entries: map[string]Entry{}, aliases: map[string]string{}}
}

func (r *Registry) add(e Entry) {
	if _, taken := r.entries[e.Type]; taken || e.Type == "" {
		panic(fmt.Sprintf("jobs: type %q is registered twice or has no name", e.Type))
	}
	r.entries[e.Type] = e
}

// Alias makes jobs that say alias run as type (email.send is
// mail.send). It panics when type is not registered.
func (r *Registry) Alias(alias, kind string) {
	if _, known := r.entries[kind]; !known {
		panic(fmt.Sprintf("jobs: alias %q for the unknown type %q", alias, kind))
	}
	r.aliases[alias] = kind
}

// Lookup finds a type by its name or by an alias of it.
func (r *Registry) Lookup(name string) (Entry, bool) {
	if kind, ok := r.aliases[name]; ok {
		name = kind
	}
	e, ok := r.entries[name]
	return e, ok
}

// Override changes the policy of a registered type, as configuration does.
func (r *Registry) Override(kind string, change func(Policy) Policy) error {
	e, ok := r.entries[kind]
	if !ok {
		return fmt.Errorf("no type is named %q; known are %v", kind, r.Types())
	}
	e.Policy = change(e.Policy).withDefaults()
	r.entries[kind] = e
	return nil
}

// Types lists the names of all types, sorted, without aliases.
func (r *Registry) Types() []string {
	names := make([]string, 0, len(r.entries))
	for name := range r.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Names lists types and aliases, sorted: every name that a row may carry.
func (r *Registry) Names() []string {
	names := r.Types()
	for alias := range r.aliases {
		names = append(names, alias)
	}
	slices.Sort(names)
	return names
}

// Maker says who may make jobs of a type.
type Maker int

// The makers of jobs, from many to few.
const (
	// Anyone is anyone who may enqueue or write rows.
	Anyone Maker = iota
	// Administrators make such jobs over HTTP or on the command line.
	Administrators
	// Service makes such jobs itself; on the command line administrators may.
	Service
)
