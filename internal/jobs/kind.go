package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/schema"
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
	// Rates are how many jobs of the type may begin in each length of time; all hold.
	Rates []Rate
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

// Limited says that a job needs a permit of the fleet to begin.
func (p Policy) Limited() bool { return p.Limit > 0 || len(p.Rates) > 0 }

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
	shape := schema.Of(reflect.TypeFor[P]())
	run := func(ctx context.Context, j Job) error {
		var err error
		if j.Data, err = r.Decrypted(j.Type, j.Data); err != nil {
			return err
		}
		payload, _, ignored, err := decode[P](r, shape, j.Type, j.Data)
		if err != nil {
			return err
		}
		// The last look at the lease: the process may have been paused on the way here.
		if err := ctx.Err(); err != nil {
			return err
		}
		noteIgnored(ctx, j.Type, ignored)
		return fn(ctx, j, payload)
	}
	check := func(data json.RawMessage) error {
		_, _, _, err := decode[P](r, shape, k.Name, data)
		return err
	}
	r.add(Entry{Type: k.Name, Queue: k.Queue, Policy: k.Policy.withDefaults(), Run: run, Check: check, Schema: shape})
}

// decode reads data as it is stored, which may be nothing at all. read is data with the
// fields' own names; unknown are fields that the type does not have.
func decode[P any](r *Registry, shape *schema.Object, jobType string, data json.RawMessage) (payload P,
	read json.RawMessage, unknown []schema.Unknown, err error) {
	if data, err = r.Decrypted(jobType, data); err != nil {
		return payload, nil, nil, err
	}
	if emptyJSON(data) {
		data = json.RawMessage("{}")
	}
	wrong := func(err error) error {
		return Permanent(phrase.Errorf("the payload of %s is not as this type needs it: %w", jobType, err))
	}
	if read, unknown, err = shape.Read(data); err != nil {
		return payload, nil, nil, wrong(err)
	}
	if err := json.Unmarshal(read, &payload); err != nil {
		return payload, nil, nil, wrong(shape.Explain(err))
	}
	if v, ok := any(&payload).(Validator); ok {
		if err := v.Validate(); err != nil {
			return payload, nil, nil, Permanent(phrase.Errorf("the payload of %s is refused: %w", jobType, err))
		}
	}
	return payload, read, unknown, nil
}

// noteIgnored says in the job's log and result which fields of a row its handler
// never saw.
func noteIgnored(ctx context.Context, jobType string, unknown []schema.Unknown) {
	if len(unknown) == 0 {
		return
	}
	refusal, names := schema.UnknownError{Type: jobType}, make([]string, len(unknown))
	for i, f := range unknown {
		names[i] = PlainText(f.Name, 191)
		Logf(ctx, "ignored: %s", PlainText(refusal.Text(f), 500))
	}
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ignored = names
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
	// Schema describes the payload, for forms, documents and [Entry.CheckNew].
	Schema *schema.Object
	// Summary reads a result of the type in sentences; nil where no type of results
	// was given, see Results.
	Summary func(result json.RawMessage) (phrase.Summary, error)
	// Maker says who may make such jobs. All but Anyone carry orders.
	Maker Maker
	// Title says what a type of another program is for, and Given is the JSON Schema
	// that the program gave; both are empty for types that run here.
	Title string
	Given json.RawMessage
}

// CheckNew is Check for a payload that is written now: fields that the type does
// not have are refused, with a schema.UnknownError, as they would be ignored.
func (e Entry) CheckNew(data json.RawMessage) error {
	if !emptyJSON(data) {
		if err := e.Schema.Check(e.Type, data); err != nil {
			return err
		}
	}
	return e.Check(data)
}

// Canonical is data with the fields' own names in place of their synonyms. Data
// that Check refuses stays as it is.
func (e Entry) Canonical(data json.RawMessage) json.RawMessage {
	if e.Maker != Anyone && OrderOf(data) != "" || emptyJSON(data) {
		return data
	}
	read, unknown, err := e.Schema.Read(data)
	if err != nil || len(unknown) > 0 {
		return data
	}
	return read
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
