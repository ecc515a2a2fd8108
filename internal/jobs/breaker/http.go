package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// HTTP watches the hosts that requests go to: for parts of the service whose
// only way out is an http.Client, such as an object store's.
type HTTP struct {
	// Base sends what is let through. Required.
	Base     http.RoundTripper
	Breakers *Breakers
	// Name is the dependency of a request; "" is not watched.
	Name func(*http.Request) string
	// Refused says of an error that nothing was sent, by our own decision: it
	// tells nothing about the host. nil is never.
	Refused func(error) bool
	Logger  *slog.Logger
}

// RoundTrip sends r, or returns the error of Allow, which is marked by
// jobs.WaitFor and comes out of http.Client.Do wrapped.
func (h *HTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	name := h.Name(r)
	if name == "" {
		return h.Base.RoundTrip(r)
	}
	if err := h.Breakers.Allow(r.Context(), name); err != nil {
		if r.Body != nil {
			err = errors.Join(err, r.Body.Close()) // RoundTrip must, also on errors
		}
		return nil, err
	}
	answer, err := h.Base.RoundTrip(r)
	h.record(r.Context(), name, answer, err)
	return answer, err
}

// record counts what says that the host is ill: no answer, or one of a server
// in trouble. Any other answer shows that it lives.
func (h *HTTP) record(ctx context.Context, name string, answer *http.Response, err error) {
	if err != nil && (ctx.Err() != nil || h.Refused != nil && h.Refused(err)) {
		return // our own doing
	}
	if err == nil {
		switch answer.StatusCode {
		case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
			http.StatusGatewayTimeout:
			err = fmt.Errorf("it answers %s", answer.Status)
		}
	}
	ctx, cancel := jobs.Outlasting(ctx)
	defer cancel()
	if err := h.Breakers.Record(ctx, name, err); err != nil {
		h.Logger.WarnContext(ctx, "circuit breaker not updated", "event", "circuit.record_failed",
			"dependency", name, "error", err)
	}
}
