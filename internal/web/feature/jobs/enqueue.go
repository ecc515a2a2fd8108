package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// EnqueueRequest asks for a job.
type EnqueueRequest struct {
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload,omitempty"`  // what the handler needs, an object
	Metadata json.RawMessage `json:"metadata,omitempty"` // who asked, from where
	Queue    string          `json:"queue,omitempty"`
	Priority int             `json:"priority,omitempty"` // higher first
	RunAt    *time.Time      `json:"run_at,omitempty"`
	Delay    int             `json:"delay,omitempty"` // seconds from now
	// MaxAttempts is how often it may start.
	MaxAttempts *int `json:"max_attempts,omitempty"`
	// UniqueKey keeps a second job out while one with this key waits or runs.
	UniqueKey string `json:"unique_key,omitempty"`
	// ID names the job; enqueuing the same id twice makes one job.
	ID string `json:"id,omitempty"`
}

// EnqueueBatch asks for several jobs: all of them, or none.
type EnqueueBatch struct {
	Jobs []EnqueueRequest `json:"jobs"`
}

// EnqueuedBatch answers for several jobs, in their order.
type EnqueuedBatch struct {
	Jobs []ops.Enqueued `json:"jobs"`
}

func (h handlers) enqueue(req *web.Request) error {
	raw, err := req.Body()
	if err != nil {
		return err
	}
	inS1 := dialect(req) == web.PocketBaseCompat
	request, err := readEnqueue(raw, inS1)
	var n jobs.Spec
	if err == nil {
		n, err = h.newJob(req, request)
	}
	if err != nil {
		if p := (*web.Problem)(nil); inS1 && errors.As(err, &p) {
			return inWordsOfS1(p)
		}
		return err
	}
	status, answer, err := h.once(req, raw, n)
	if err != nil {
		return err
	}
	if inS1 {
		return req.JSON(status, compat.S1Receipt(answer))
	}
	return req.JSON(status, answer)
}

// readEnqueue reads a request, with the names of the specifications where the
// route has them.
func readEnqueue(raw []byte, synonyms bool) (r EnqueueRequest, err error) {
	if raw, err = web.CheckBody(raw); err != nil {
		return r, err
	}
	if synonyms {
		if raw, err = compat.Normalise(raw); err != nil {
			return r, err
		}
	}
	return r, web.DecodeBody(raw, &r)
}

// inWordsOfS1 names the faulty fields as the caller does.
func inWordsOfS1(p *web.Problem) *web.Problem {
	renamed := *p
	renamed.Errors = nil
	for _, field := range p.Errors {
		renamed.Errors = append(renamed.Errors, web.FieldProblem{Field: compat.Field(field.Field),
			Detail: field.Detail})
	}
	return &renamed
}

const maxBatch = 1000

func (h handlers) enqueueBatch(req *web.Request) error {
	var request EnqueueBatch
	if err := req.Decode(&request); err != nil {
		return err
	}
	if len(request.Jobs) == 0 || len(request.Jobs) > maxBatch {
		return web.RefuseField(http.StatusUnprocessableEntity, "jobs", "A batch has 1 to %d jobs, not %d.", maxBatch,
			len(request.Jobs))
	}
	if h.Inline != nil {
		return web.Refuse(http.StatusConflict, "Jobs are disabled: enqueue them one by one, each runs at once.")
	}
	news := make([]jobs.Spec, 0, len(request.Jobs))
	for i, r := range request.Jobs {
		n, err := h.newJob(req, r)
		if err != nil {
			p := req.Problem(err)
			p.Detail = fmt.Sprintf("Job %d of the batch: %s", i+1, p.Detail)
			return &p
		}
		news = append(news, n)
	}
	receipts, err := req.Enqueuer().Enqueue(req.Ctx(), news...)
	if err != nil {
		return fmt.Errorf("enqueuing %d jobs: %w", len(news), err)
	}
	answer := EnqueuedBatch{Jobs: make([]ops.Enqueued, 0, len(news))}
	for i, r := range receipts {
		answer.Jobs = append(answer.Jobs, h.enqueued(req, news[i], r))
	}
	req.Audit(fmt.Sprintf("%d jobs", len(news)), news[0].Type)
	return req.JSON(http.StatusCreated, answer)
}

// newJob turns a request into a job, or says what is wrong with it.
func (h handlers) newJob(req *web.Request, r EnqueueRequest) (jobs.Spec, error) {
	if r.Type == "" {
		return jobs.Spec{}, web.RefuseField(http.StatusUnprocessableEntity, "type",
			`A job needs a type: {"type": "sitemap.generate"}.`)
	}
	req.Audit("", redact.Clip(r.Type, 191))
	entry, err := h.entry(req, r.Type)
	if err != nil {
		return jobs.Spec{}, err
	}
	r.Payload = jobs.WithoutType(r.Payload, r.Type, entry.Type)
	if err := req.MayEnqueue(entry.Type, r.Payload); err != nil {
		return jobs.Spec{}, err
	}
	if err := h.allowQueue(req, r.Queue); err != nil {
		return jobs.Spec{}, err
	}
	n := jobs.Spec{Type: entry.Type, Queue: cmp.Or(r.Queue, entry.Queue), Data: entry.Canonical(r.Payload),
		Priority: r.Priority, UniqueKey: r.UniqueKey, UUID: r.ID}
	if n.Metadata, err = h.metadata(req, r.Metadata); err != nil {
		return n, err
	}
	if err := limits(&n, r); err != nil {
		return n, err
	}
	if h.NoPriorities && n.Priority != 0 {
		return n, web.RefuseField(http.StatusUnprocessableEntity, "priority",
			"The jobs table has no column for a priority: put the job on a queue that is worked first.")
	}
	if err := n.Check(); err != nil {
		if errors.Is(err, jobs.ErrTooLarge) {
			return n, web.Refuse(http.StatusRequestEntityTooLarge, "%s", web.Spoken{Err: err})
		}
		return n, web.Refuse(http.StatusUnprocessableEntity, "%s", web.Spoken{Err: err})
	}
	return n, nil
}

// allowQueue refuses a queue that no job may be put on.
func (h handlers) allowQueue(req *web.Request, name string) error {
	err := h.queues.Allow(req.Ctx(), req.Now(), name)
	var refused *ops.Refusal
	if errors.As(err, &refused) {
		return web.RefuseField(http.StatusUnprocessableEntity, refused.Field, refused.Form, refused.Args...)
	}
	return err
}

// entry is the type of a job: one of this program, one that a worker of another
// program announced, or one that a live worker runs of which only the name is known.
func (h handlers) entry(req *web.Request, name string) (jobs.Entry, error) {
	if e, known := req.Registry().Known(name); known {
		return e, nil
	}
	if h.Refresh != nil { // it may have been announced a moment ago
		if err := h.Refresh(req.Ctx()); err != nil {
			return jobs.Entry{}, fmt.Errorf("asking which types other programs announced: %w", err)
		}
		if e, known := req.Registry().Known(name); known {
			return e, nil
		}
	}
	if h.Workers != nil {
		workers, err := h.Workers.Workers(req.Ctx())
		if err != nil {
			return jobs.Entry{}, fmt.Errorf("asking which types other programs run: %w", err)
		}
		for _, w := range workers {
			if w.Alive && slices.Contains(w.Types, name) {
				return jobs.Entry{Type: name}, nil
			}
		}
	}
	return jobs.Entry{}, unknownType(req, name)
}

// unknownType refuses a type, and names the one that was probably meant.
func unknownType(req *web.Request, name string) error {
	if refusal := (*ops.Refusal)(nil); errors.As(ops.UnknownType(req.Registry(), name), &refusal) {
		return web.RefuseField(http.StatusUnprocessableEntity, refusal.Field, refusal.Form, refusal.Args...)
	}
	return nil
}

// maxDelay bounds how far ahead a job may be: the tables' columns end in 2106.
const maxDelay = 10 * 365 * 24 * time.Hour

func limits(n *jobs.Spec, r EnqueueRequest) error {
	if r.MaxAttempts != nil {
		if n.MaxAttempts = *r.MaxAttempts; n.MaxAttempts < 1 || n.MaxAttempts > 255 {
			return web.RefuseField(http.StatusUnprocessableEntity, "max_attempts", "A job may start 1 to 255 times.")
		}
	}
	n.Delay = time.Duration(r.Delay) * time.Second
	if r.Delay < 0 || r.Delay > int(maxDelay/time.Second) {
		return web.RefuseField(http.StatusUnprocessableEntity, "delay", "delay is in seconds, from 0 to ten years.")
	}
	if r.RunAt != nil {
		if at := *r.RunAt; at.Year() < 1971 || at.Year() > 2105 {
			return web.RefuseField(http.StatusUnprocessableEntity, "run_at", "run_at must lie between 1971 and 2105.")
		}
		n.RunAt, n.Delay = r.RunAt.UTC(), 0
	}
	if n.Priority < -1<<31 || n.Priority > 1<<31-1 {
		return web.RefuseField(http.StatusUnprocessableEntity, "priority", "priority must fit into 32 bits.")
	}
	if n.UUID != "" {
		if _, err := uuid.Parse(n.UUID); err != nil || len(n.UUID) != 36 {
			return web.RefuseField(http.StatusUnprocessableEntity, "id", "id must be a UUID as "+
				"9b2d7a52-9c0e-4d3e-8f6b-2f7a0c1d5e11.")
		}
	}
	return nil
}

// metadata is the caller's, with who asked, from where and the trace added
// where the caller does not say.
func (h handlers) metadata(req *web.Request, given json.RawMessage) (json.RawMessage, error) {
	metadata := map[string]json.RawMessage{} // raw: numbers keep their digits
	if len(given) > 0 && string(given) != "null" {
		if err := json.Unmarshal(given, &metadata); err != nil {
			return nil, web.RefuseField(http.StatusUnprocessableEntity, "metadata", "metadata must be an object.")
		}
	}
	add := func(key, value string) {
		text, err := json.Marshal(redact.Clip(strings.ToValidUTF8(value, "\uFFFD"), 255))
		if _, there := metadata[key]; !there && value != "" && err == nil {
			metadata[key] = text
		}
	}
	add("userId", req.Caller().Name)
	add("ipAddress", req.RealIP())
	add("userAgent", req.Request().UserAgent())
	add("traceparent", req.Request().Header.Get("traceparent"))
	return json.Marshal(metadata)
}
