package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
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

func (s *Server) enqueue(c echo.Context) error {
	raw, err := rawBody(c)
	if err != nil {
		return err
	}
	inS1 := s.words(c) == PocketBaseCompat
	request, err := readEnqueue(raw, inS1)
	var n jobs.Spec
	if err == nil {
		n, err = s.newJob(c, request)
	}
	if err != nil {
		if p := (*Problem)(nil); inS1 && errors.As(err, &p) {
			return inWordsOfS1(p)
		}
		return err
	}
	status, answer, err := s.once(c, raw, n)
	if err != nil {
		return err
	}
	if inS1 {
		return c.JSON(status, compat.S1Receipt(answer))
	}
	return c.JSON(status, answer)
}

// readEnqueue reads a request, with the names of the specifications where the
// route has them.
func readEnqueue(raw []byte, synonyms bool) (r EnqueueRequest, err error) {
	if raw, err = checked(raw); err != nil {
		return r, err
	}
	if synonyms {
		if raw, err = compat.Normalise(raw); err != nil {
			return r, err
		}
	}
	return r, decode(raw, &r)
}

// inWordsOfS1 names the faulty fields as the caller does.
func inWordsOfS1(p *Problem) *Problem {
	renamed := *p
	renamed.Errors = nil
	for _, field := range p.Errors {
		renamed.Errors = append(renamed.Errors, FieldProblem{compat.Field(field.Field), field.Detail})
	}
	return &renamed
}

const maxBatch = 1000

func (s *Server) enqueueBatch(c echo.Context) error {
	var request EnqueueBatch
	if err := body(c, &request); err != nil {
		return err
	}
	if len(request.Jobs) == 0 || len(request.Jobs) > maxBatch {
		return fieldError(http.StatusUnprocessableEntity, "jobs", "A batch has 1 to %d jobs, not %d.", maxBatch, len(request.Jobs))
	}
	if s.cfg.Doer != nil {
		return httpError(http.StatusConflict, "Jobs are disabled: enqueue them one by one, each runs at once.")
	}
	news := make([]jobs.Spec, 0, len(request.Jobs))
	for i, r := range request.Jobs {
		n, err := s.newJob(c, r)
		if err != nil {
			p := *s.problemOf(err)
			p.Detail = fmt.Sprintf("Job %d of the batch: %s", i+1, p.Detail)
			return &p
		}
		news = append(news, n)
	}
	receipts, err := s.cfg.Enqueuer.Enqueue(c.Request().Context(), news...)
	if err != nil {
		return fmt.Errorf("enqueuing %d jobs: %w", len(news), err)
	}
	answer := EnqueuedBatch{Jobs: make([]ops.Enqueued, 0, len(news))}
	for i, r := range receipts {
		answer.Jobs = append(answer.Jobs, s.enqueued(c, news[i], r))
	}
	setAuditTarget(c, fmt.Sprintf("%d jobs", len(news)), news[0].Type)
	return c.JSON(http.StatusCreated, answer)
}

// newJob turns a request into a job, or says what is wrong with it.
func (s *Server) newJob(c echo.Context, r EnqueueRequest) (jobs.Spec, error) {
	if r.Type == "" {
		return jobs.Spec{}, fieldError(http.StatusUnprocessableEntity, "type", `A job needs a type: {"type": "sitemap.generate"}.`)
	}
	setAuditTarget(c, "", clip(r.Type, 191))
	entry, ok := s.cfg.Registry.Lookup(r.Type)
	if !ok {
		return jobs.Spec{}, fieldError(http.StatusUnprocessableEntity, "type", "There is no type %q here. Known are %s.", clip(r.Type, 60), strings.Join(s.cfg.Registry.Types(), ", "))
	}
	if err := s.mayEnqueue(c, entry.Type, r.Payload); err != nil {
		return jobs.Spec{}, err
	}
	if err := s.queues.allow(c.Request().Context(), r.Queue); err != nil {
		return jobs.Spec{}, err
	}
	n := jobs.Spec{Type: entry.Type, Queue: firstOf(r.Queue, entry.Queue), Data: r.Payload, Priority: r.Priority, UniqueKey: r.UniqueKey, UUID: r.ID}
	var err error
	if n.Metadata, err = s.metadata(c, r.Metadata); err != nil {
		return n, err
	}
	if err := limits(&n, r); err != nil {
		return n, err
	}
	if err := n.Check(); err != nil {
		if errors.Is(err, jobs.ErrTooLarge) {
			return n, httpError(http.StatusRequestEntityTooLarge, "%s", sentence(err.Error()))
		}
		return n, httpError(http.StatusUnprocessableEntity, "%s", sentence(err.Error()))
	}
	return n, nil
}

// maxDelay bounds how far ahead a job may be: the tables' columns end in 2106.
const maxDelay = 10 * 365 * 24 * time.Hour

func limits(n *jobs.Spec, r EnqueueRequest) error {
	if r.MaxAttempts != nil {
		if n.MaxAttempts = *r.MaxAttempts; n.MaxAttempts < 1 || n.MaxAttempts > 255 {
			return fieldError(http.StatusUnprocessableEntity, "max_attempts", "A job may start 1 to 255 times.")
		}
	}
	n.Delay = time.Duration(r.Delay) * time.Second
	if r.Delay < 0 || r.Delay > int(maxDelay/time.Second) {
		return fieldError(http.StatusUnprocessableEntity, "delay", "delay is in seconds, from 0 to ten years.")
	}
	if r.RunAt != nil {
		if at := *r.RunAt; at.Year() < 1971 || at.Year() > 2105 {
			return fieldError(http.StatusUnprocessableEntity, "run_at", "run_at must lie between 1971 and 2105.")
		}
		n.RunAt, n.Delay = r.RunAt.UTC(), 0
	}
	if n.Priority < -1<<31 || n.Priority > 1<<31-1 {
		return fieldError(http.StatusUnprocessableEntity, "priority", "priority must fit into 32 bits.")
	}
	if n.UUID != "" {
		if _, err := uuid.Parse(n.UUID); err != nil || len(n.UUID) != 36 {
			return fieldError(http.StatusUnprocessableEntity, "id", "id must be a UUID as 9b2d7a52-9c0e-4d3e-8f6b-2f7a0c1d5e11.")
		}
	}
	return nil
}

// metadata is the caller's, with who asked, from where and the trace added
// where the caller does not say.
func (s *Server) metadata(c echo.Context, given json.RawMessage) (json.RawMessage, error) {
	metadata := map[string]json.RawMessage{} // raw: numbers keep their digits
	if len(given) > 0 && string(given) != "null" {
		if err := json.Unmarshal(given, &metadata); err != nil {
			return nil, fieldError(http.StatusUnprocessableEntity, "metadata", "metadata must be an object.")
		}
	}
	add := func(key, value string) {
		text, err := json.Marshal(clip(strings.ToValidUTF8(value, "\uFFFD"), 255))
		if _, there := metadata[key]; !there && value != "" && err == nil {
			metadata[key] = text
		}
	}
	add("userId", who(c).Name)
	add("ipAddress", c.RealIP())
	add("userAgent", c.Request().UserAgent())
	add("traceparent", c.Request().Header.Get("traceparent"))
	return json.Marshal(metadata)
}

// once enqueues under the request's Idempotency-Key, where it has one.
func (s *Server) once(c echo.Context, raw []byte, n jobs.Spec) (int, ops.Enqueued, error) {
	ctx, key, gate := c.Request().Context(), c.Request().Header.Get("Idempotency-Key"), s.cfg.Gate.Store
	if key == "" {
		return s.put(c, n)
	}
	if len(key) > 255 {
		return 0, ops.Enqueued{}, httpError(http.StatusBadRequest, "The Idempotency-Key may have 255 bytes.")
	}
	proposal := firstOf(n.UUID, uuid.NewString())
	p := who(c)
	reserved, err := gate.Reserve(ctx, p.Via+" "+p.Name, key, c.Path()+"\n"+string(raw), proposal)
	if err != nil {
		return 0, ops.Enqueued{}, err
	}
	if reserved.Answer != nil {
		var answer ops.Enqueued
		if err := json.Unmarshal(reserved.Answer, &answer); err != nil {
			return 0, answer, fmt.Errorf("reading the kept answer: %w", err)
		}
		setAuditTarget(c, answer.ID, answer.Type)
		answer.Existing = true
		return http.StatusOK, answer, nil
	}
	n.UUID = reserved.UUID
	status, answer, err := s.putOnce(c, n, reserved)
	if err != nil {
		return 0, answer, err
	}
	kept, err := json.Marshal(answer)
	if err == nil {
		err = gate.Remember(ctx, reserved, kept)
	}
	if err != nil { // the job is in: a repetition finds it by its UUID
		s.cfg.Log.Warn("answer for an Idempotency-Key not stored", "event", "http.idempotency_failed",
			"id", answer.ID, "error", err)
	}
	return status, answer, nil
}

// putOnce enqueues a job whose key is reserved. A request that is not the
// first may come after a crash between enqueuing and answering: the job may
// be waiting, or done.
func (s *Server) putOnce(c echo.Context, n jobs.Spec, reserved access.Reservation) (int, ops.Enqueued, error) {
	if !reserved.Fresh {
		r, err := s.cfg.Ledger.Job(c.Request().Context(), n.UUID)
		if err == nil {
			return http.StatusOK, s.existing(c, r), nil
		}
		if !isNotFound(err) {
			return 0, ops.Enqueued{}, fmt.Errorf("looking up the job of the Idempotency-Key: %w", err)
		}
	}
	return s.put(c, n)
}

func (s *Server) existing(c echo.Context, r jobs.Record) ops.Enqueued {
	setAuditTarget(c, ops.IDOf(r), r.Type)
	return ops.ExistingView(r)
}

// put enqueues a job, or runs it at once where jobs are disabled.
func (s *Server) put(c echo.Context, n jobs.Spec) (int, ops.Enqueued, error) {
	if s.cfg.Doer != nil {
		return s.executeInline(c, n)
	}
	receipts, err := s.cfg.Enqueuer.Enqueue(c.Request().Context(), n)
	if err != nil {
		return 0, ops.Enqueued{}, fmt.Errorf("enqueuing %s: %w", n.Type, err)
	}
	if receipts[0].Existing {
		r, err := s.cfg.Ledger.Job(c.Request().Context(), receipts[0].UUID)
		if err == nil {
			return http.StatusOK, s.existing(c, r), nil
		}
		if !isNotFound(err) {
			return 0, ops.Enqueued{}, fmt.Errorf("looking up the job that is there: %w", err)
		}
		return http.StatusOK, s.enqueued(c, n, receipts[0]), nil
	}
	return http.StatusCreated, s.enqueued(c, n, receipts[0]), nil
}

func (s *Server) enqueued(c echo.Context, n jobs.Spec, r jobs.Receipt) ops.Enqueued {
	setAuditTarget(c, r.UUID, n.Type)
	return ops.EnqueuedView(n, r, s.cfg.Now())
}

// executeInline is S2.15: jobs are disabled, the handler runs while the caller waits.
func (s *Server) executeInline(c echo.Context, n jobs.Spec) (int, ops.Enqueued, error) {
	now := s.cfg.Now().UTC()
	n.UUID = firstOf(n.UUID, uuid.NewString())
	answer := ops.Enqueued{ID: n.UUID, Type: n.Type, Status: string(jobs.StatusCompleted), RunAt: now, EnqueuedAt: now}
	setAuditTarget(c, n.UUID, n.Type+" at once")
	result, err := s.cfg.Doer.Do(c.Request().Context(), n)
	if err != nil {
		answer.Status, answer.Error = string(jobs.StatusFailed), s.viewer(c).Text(err.Error())
		return http.StatusOK, answer, nil
	}
	if len(result) > 0 {
		answer.Result = s.viewer(c).Payload(n.Type, result)
	}
	return http.StatusOK, answer, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
