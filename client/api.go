package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// API asks the running service over HTTP. It is safe for concurrent use.
type API struct {
	base, token string
	options     APIOptions
}

// APIOptions are the parts of an API that may be replaced. Zero fields mean the
// defaults that are named.
type APIOptions struct {
	// HTTP makes the requests: a client with a time-out of 30 seconds.
	HTTP *http.Client
	// Wait is how long to wait before the nth repetition (1, 2, …) of a request
	// that may be repeated, where the service does not say: 0.2 s, 0.4 s, …
	Wait func(n int) time.Duration
	Now  func() time.Time // for new ids; nil is time.Now
}

// NewAPI speaks to the service at base ("https://cms.example/jobs") as the
// holder of a token ("cmsjobs token create").
func NewAPI(base, token string, o APIOptions) *API {
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: 30 * time.Second}
	}
	if o.Wait == nil {
		o.Wait = func(n int) time.Duration { return 100 * time.Millisecond << n }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &API{strings.TrimRight(base, "/"), token, o}
}

// Refusal is the service's answer to what it does not do (RFC 9457). errors.Is
// finds ErrNotFound (404), ErrConflict (409) and ErrInvalid (400, 422) in it.
type Refusal struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Fields []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
	wait time.Duration // Retry-After
}

func (r *Refusal) Error() string {
	text := r.Detail
	if text == "" {
		text = r.Title
	}
	return fmt.Sprintf("the service refused by %d: %s", r.Status, text)
}

// Is makes the errors of this package out of statuses.
func (r *Refusal) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return r.Status == http.StatusNotFound
	case ErrConflict:
		return r.Status == http.StatusConflict
	case ErrInvalid:
		return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity
	}
	return false
}

// request is the body that enqueues.
type request struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Queue       string          `json:"queue,omitempty"`
	Priority    int             `json:"priority,omitempty"`
	RunAt       *time.Time      `json:"run_at,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	UniqueKey   string          `json:"unique_key,omitempty"`
	ID          string          `json:"id,omitempty"`
}

// Enqueue asks for a job. It is repeated where the answer is lost, and makes one
// job however often: every call has its own Idempotency-Key.
func (a *API) Enqueue(ctx context.Context, j Job) (Receipt, error) {
	e, err := j.encode()
	if err != nil {
		return Receipt{}, err
	}
	r := request{Type: e.Type, Payload: e.payload, Metadata: e.metadata, Queue: e.Queue, Priority: e.Priority,
		MaxAttempts: e.MaxAttempts, UniqueKey: e.UniqueKey, ID: e.ID}
	if !e.RunAt.IsZero() {
		at := e.RunAt.UTC()
		r.RunAt = &at
	}
	body, err := json.Marshal(r)
	if err != nil {
		return Receipt{}, fmt.Errorf("encoding the request for %s: %w", j.Type, err)
	}
	var answer struct {
		ID       string `json:"id"`
		Existing bool   `json:"existing"`
	}
	err = a.ask(ctx, call{method: "POST", path: "/api/v1/jobs", body: body, key: newUUID(a.options.Now()),
		repeat: true}, &answer)
	if err != nil {
		return Receipt{}, fmt.Errorf("enqueuing %s: %w", j.Type, err)
	}
	return Receipt{ID: answer.ID, Existing: answer.Existing}, nil
}

// Info is what is known of a job. Times that are not known are zero.
type Info struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Queue string `json:"queue"`
	// Status is queued, processing, completed, failed or cancelled.
	Status      string          `json:"status"`
	Detail      string          `json:"detail"` // delayed, retrying, stalled, paused or ""
	Payload     json.RawMessage `json:"payload"`
	Metadata    json.RawMessage `json:"metadata"`
	Priority    int             `json:"priority"`
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"max_attempts"`
	Error       string          `json:"error"`
	Result      json.RawMessage `json:"result"`
	RunAt       time.Time       `json:"run_at"`
	EnqueuedAt  time.Time       `json:"enqueued_at"`
	StartedAt   time.Time       `json:"started_at"`
	EndedAt     time.Time       `json:"ended_at"`
}

// Job finds a waiting, running, finished or failed job by id or row number.
func (a *API) Job(ctx context.Context, id string) (Info, error) {
	var i Info
	err := a.ask(ctx, call{method: "GET", path: "/api/v1/jobs/" + url.PathEscape(id), repeat: true}, &i)
	if err != nil {
		return Info{}, fmt.Errorf("job %s: %w", id, err)
	}
	return i, nil
}

// Filter chooses jobs; empty fields choose all. Status knows the words of all
// specifications (pending, running, succeeded …).
type Filter struct {
	Type, Status, Queue string
	Limit               int    // 0 is the service's default
	Cursor              string // Page.Next of the part before
}

// Page is a part of a list, newest first.
type Page struct {
	Items []Info `json:"items"`
	Total int64  `json:"total"` // −1 where counting would be expensive
	Next  string `json:"next"`  // cursor of the next part, "" at the end
}

// Jobs lists jobs.
func (a *API) Jobs(ctx context.Context, f Filter) (Page, error) {
	query := url.Values{}
	for name, value := range map[string]string{"type": f.Type, "status": f.Status, "queue": f.Queue,
		"cursor": f.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Limit > 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	var p Page
	if err := a.ask(ctx, call{method: "GET", path: "/api/v1/jobs?" + query.Encode(), repeat: true}, &p); err != nil {
		return Page{}, fmt.Errorf("listing jobs: %w", err)
	}
	return p, nil
}

// Stats are the queue's figures at one moment.
type Stats struct {
	Waiting     int64   `json:"waiting"` // the delayed ones included
	Delayed     int64   `json:"delayed"`
	Processing  int64   `json:"processing"`
	Completed   int64   `json:"completed"`
	Failed      int64   `json:"failed"`
	Cancelled   int64   `json:"cancelled"`
	SuccessRate float64 `json:"success_rate"`    // 0…1
	AverageMS   int64   `json:"avg_duration_ms"` // of completed runs, in milliseconds
}

// Stats counts jobs.
func (a *API) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	if err := a.ask(ctx, call{method: "GET", path: "/api/v1/jobs/stats", repeat: true}, &s); err != nil {
		return Stats{}, fmt.Errorf("counting jobs: %w", err)
	}
	return s, nil
}

// Requeue runs a job again: a failed one is put back into its queue, a delayed
// one is due now, an ended one is enqueued again. It returns the job that runs.
func (a *API) Requeue(ctx context.Context, id string) (Info, error) {
	var i Info
	if err := a.ask(ctx, call{method: "POST", path: "/api/v1/jobs/" + url.PathEscape(id) + "/requeue"},
		&i); err != nil {
		return Info{}, fmt.Errorf("running job %s again: %w", id, err)
	}
	return i, nil
}

// Delete removes a waiting or failed job.
func (a *API) Delete(ctx context.Context, id string) error {
	if err := a.ask(ctx, call{method: "DELETE", path: "/api/v1/jobs/" + url.PathEscape(id)}, nil); err != nil {
		return fmt.Errorf("deleting job %s: %w", id, err)
	}
	return nil
}

// call is one request. What may be repeated is, when no answer comes or the
// service says "later" (429, 502 to 504).
type call struct {
	method, path string
	body         []byte
	key          string // Idempotency-Key
	repeat       bool
}

const (
	maxAnswer = 64 << 20 // bytes: a long list of large payloads
	maxCalls  = 4
	maxWait   = 30 * time.Second // a longer Retry-After is the caller's business
)

func (a *API) ask(ctx context.Context, c call, into any) error {
	for n := 1; ; n++ {
		err := a.once(ctx, c, into)
		wait := a.options.Wait(n)
		var refusal *Refusal
		if errors.As(err, &refusal) {
			if refusal.Status != http.StatusTooManyRequests && refusal.Status < http.StatusBadGateway {
				return err
			}
			wait = max(wait, refusal.wait)
		}
		if err == nil || !c.repeat || n == maxCalls || wait > maxWait {
			return err
		}
		if slept := sleep(ctx, wait); slept != nil {
			return errors.Join(slept, err)
		}
	}
}

func (a *API) once(ctx context.Context, c call, into any) error {
	r, err := http.NewRequestWithContext(ctx, c.method, a.base+c.path, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	if c.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Idempotency-Key", c.key)
	}
	answer, err := a.options.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if len(text) > maxAnswer {
		return fmt.Errorf("the answer has more than %d MiB: ask for less at once", maxAnswer>>20)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return refusalOf(answer, text)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

func refusalOf(answer *http.Response, text []byte) error {
	r := &Refusal{Title: http.StatusText(answer.StatusCode)}
	_ = json.Unmarshal(text, r) // a proxy's page is no problem document
	r.Status = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		r.wait = time.Duration(max(seconds, 0)) * time.Second
	}
	return r
}
