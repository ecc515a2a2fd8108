package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Result is what a delivery leaves for people to read.
type Result struct {
	Status     int    `json:"status,omitempty"`
	Answer     string `json:"answer,omitempty"`
	Note       string `json:"note,omitempty"`
	DurationMS int64  `json:"durationMs,omitempty"`
}

// deliver runs a webhook.deliver job.
func (h *Handler) deliver(ctx context.Context, job jobs.Job, p DeliverPayload) error {
	c, skip, err := h.call(ctx, job, p)
	if err != nil {
		return err
	}
	if skip != "" {
		return jobs.SetResult(ctx, Result{Note: skip})
	}
	if !job.EnqueuedAt.IsZero() && c.at.Sub(job.EnqueuedAt) > h.c.MaxAge {
		return jobs.Permanent(fmt.Errorf("given up: %s could not be reached for %s", shown(c.url), h.c.MaxAge))
	}
	dependency := "webhook:" + hostOf(c.url)
	if h.c.Breaker != nil {
		if err := h.c.Breaker.Allow(ctx, dependency); err != nil {
			return err
		}
	}
	h.send(ctx, c)
	h.recordUse(ctx, dependency, c)
	if err := h.log(ctx, c); err != nil {
		h.c.Logger.WarnContext(ctx, "webhook delivery not logged", "event", "webhook.log_failed",
			"uuid", job.UUID, "error", err)
	}
	if err := jobs.SetResult(ctx, Result{Status: c.status, Answer: cut(c.answer, 300),
		DurationMS: c.took.Milliseconds()}); err != nil {
		return err
	}
	return h.recordOutcome(ctx, p, c)
}

// call makes the request's parts. skip says why there is nothing to send.
func (h *Handler) call(ctx context.Context, job jobs.Job, p DeliverPayload) (c *call, skip string, err error) {
	c = &call{subscription: p.Subscription, event: p.Event, url: p.URL, id: p.ID, attempt: job.Attempt, at: h.c.Now()}
	secrets := []string{}
	if h.c.DefaultSecret != "" {
		secrets = append(secrets, h.c.DefaultSecret)
	}
	if p.Subscription != 0 {
		s, err := h.subscription(ctx, p.Subscription)
		if errors.Is(err, ErrNoSubscription) {
			return nil, "the subscription was removed", nil
		}
		if err != nil {
			return nil, "", err
		}
		if s.Status != Active {
			return nil, "the subscription is disabled: " + s.Reason, nil
		}
		if p.Event != Test && !s.wants(p.Event) {
			return nil, "", jobs.Permanent(fmt.Errorf("the subscription %d does not want the event %s: it wants %s",
				p.Subscription, p.Event, strings.Join(s.Events, ", ")))
		}
		c.url, secrets = s.URL, s.secrets(c.at)
	}
	if c.id == "" {
		c.id = job.UUID
	}
	happened := p.At
	if happened == "" {
		happened = job.EnqueuedAt.UTC().Format(time.RFC3339)
	}
	data := p.Data
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	c.body, err = json.Marshal(struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}{p.Event, happened, data})
	if err != nil {
		return nil, "", jobs.Permanent(fmt.Errorf("encoding the webhook: %w", err))
	}
	for _, secret := range secrets {
		signature, err := Sign(secret, c.id, c.at, c.body)
		if err != nil {
			return nil, "", jobs.Permanent(err)
		}
		c.signature = strings.TrimSpace(c.signature + " " + signature)
	}
	return c, "", nil
}

// send makes the request and keeps what came back in c.
func (h *Handler) send(ctx context.Context, c *call) {
	defer func() { c.took = h.c.Now().Sub(c.at) }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		c.err = jobs.Permanent(errors.New("the address is not one of HTTP"))
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "cmsjobs-webhook/1")
	r.Header.Set(HeaderID, c.id)
	r.Header.Set(HeaderTimestamp, strconv.FormatInt(c.at.Unix(), 10))
	if c.signature != "" {
		r.Header.Set(HeaderSignature, c.signature)
	}
	answer, err := h.c.Client.Do(r) //nolint:bodyclose // ReadBody closes it
	if err != nil {
		c.err = outbound.WithoutAddress(err)
		return
	}
	c.status, c.retryAfter = answer.StatusCode, answer.Header.Get("Retry-After")
	text, err := outbound.ReadBody(answer)
	if err != nil && !errors.Is(err, outbound.ErrTooLarge) && (c.status < 200 || c.status > 299) {
		c.err = outbound.WithoutAddress(err)
	}
	c.answer = string(text)
}

// recordUse tells the breaker how the host is: any answer of the host shows
// that it lives, a gateway's does not.
func (h *Handler) recordUse(ctx context.Context, dependency string, c *call) {
	if h.c.Breaker == nil || ctx.Err() != nil || errors.Is(c.err, outbound.ErrRefused) {
		return
	}
	trouble := c.err
	if trouble == nil && c.status >= 502 && c.status <= 504 {
		trouble = fmt.Errorf("it answers %d", c.status)
	}
	if err := h.c.Breaker.Record(ctx, dependency, trouble); err != nil {
		h.c.Logger.WarnContext(ctx, "circuit breaker not updated", "event", "circuit.record_failed",
			"dependency", dependency, "error", err)
	}
}

// maxRetryAfter bounds what a host may ask for.
const maxRetryAfter = 6 * time.Hour

// recordOutcome turns the answer into the job's end.
func (h *Handler) recordOutcome(ctx context.Context, p DeliverPayload, c *call) error {
	switch {
	case errors.Is(c.err, outbound.ErrRefused):
		return jobs.Permanent(fmt.Errorf("delivering to %s: %w", shown(c.url), c.err))
	case c.err != nil:
		return fmt.Errorf("delivering to %s: %w", shown(c.url), c.err)
	case c.status >= 200 && c.status <= 299:
		return nil
	case c.status == http.StatusGone && p.Subscription != 0:
		ctx, cancel := jobs.Outlasting(ctx)
		defer cancel()
		return h.Disable(ctx, p.Subscription, "the receiver answered 410 Gone")
	case c.status == http.StatusGone:
		return jobs.Permanent(fmt.Errorf("delivering to %s: it answered 410 Gone", shown(c.url)))
	}
	err := fmt.Errorf("delivering to %s: it answered %d: %s", shown(c.url), c.status, cut(c.answer, 200))
	if wait, said := outbound.RetryAfter(c.retryAfter, c.at); said {
		return jobs.RetryAfter(err, min(wait, maxRetryAfter))
	}
	return err
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Register adds webhook.deliver.
func (h *Handler) Register(r *jobs.Registry) {
	h.registry = r
	jobs.HandleInternal(r, jobs.Internal{Book: h.c.Orders, Maker: jobs.Service, Rows: h.c.Rows}, Deliver, h.deliver)
	jobs.Results[Result](r, Deliver)
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	if r.Note != "" {
		s.Say("Nothing was sent: %s.", r.Note)
		return s
	}
	took := time.Duration(r.DurationMS) * time.Millisecond
	if r.Status == 0 {
		s.Say("There was no answer after %s.", took)
	} else {
		s.Say("The server answered with status %s after %s.", r.Status, took)
	}
	if r.Answer != "" {
		phrase.Lines(&s, phrase.Columns("Answer"), []string{r.Answer})
	}
	return s
}
