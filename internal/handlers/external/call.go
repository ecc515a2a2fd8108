package external

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// CallResult is what a request leaves.
type CallResult struct {
	Status     int    `json:"status"`
	Answer     string `json:"answer"`
	DurationMS int64  `json:"duration_ms"`
}

func (h *Handler) call(ctx context.Context, j jobs.Job, p Payload) error {
	c := h.c.Calls[p.Name]
	timeout := cmp.Or(c.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %v "+
		"(external.calls.%s.timeout)",
		timeout, p.Name))
	defer cancel()
	method := c.Method
	if method == "" {
		method = map[bool]string{true: http.MethodGet, false: http.MethodPost}[c.Body == ""]
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return jobs.Permanent(fmt.Errorf("the request of %s: %w", p.Name, err))
	}
	for name, value := range c.Header {
		req.Header.Set(name, value)
	}
	started := h.c.Now()
	if c.Secret != "" {
		if err := h.c.Sign(req.Header, c.Secret, j.UUID, started, []byte(c.Body)); err != nil {
			return jobs.Permanent(fmt.Errorf("signing the request of %s: %w", p.Name, err))
		}
	}
	answer, err := h.c.Client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("calling %s: %w", p.Name, outbound.WithoutAddress(err))
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(cmp.Or(c.Output, DefaultOutput))))
	if err != nil {
		return fmt.Errorf("reading the answer to %s: %w", p.Name, err)
	}
	result := CallResult{Status: answer.StatusCode, Answer: jobs.PlainText(string(text), maxOutput, '\n', '\t'),
		DurationMS: h.c.Now().Sub(started).Milliseconds()}
	if err := jobs.SetResult(ctx, result); err != nil {
		return err
	}
	if slices.Contains(c.Expect, answer.StatusCode) || len(c.Expect) == 0 && answer.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("%s answered %s", p.Name, answer.Status)
}

// Summary implements jobs.Summarizer.
func (r CallResult) Summary() (s phrase.Summary) {
	s.Say("The server answered with status %s after %s.", r.Status, time.Duration(r.DurationMS)*time.Millisecond)
	phrase.Lines(&s, phrase.Columns("Answer"), lines(r.Answer))
	return s
}
