package mail

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// SendTest sends a test mail at once, past the queue and the limits, and says
// what the server answered.
func (h *Handler) SendTest(ctx context.Context, uuid, to string) (Result, error) {
	t, err := h.Transport(ctx)
	if err != nil {
		return Result{}, err
	}
	run := jobs.NewRun(h.c.Now)
	ctx = jobs.WithRun(ctx, run)
	p := SendPayload{To: Addresses{to}, Template: "test", Data: map[string]any{"driver": t.Driver, "host": t.Host,
		"at": h.c.Now().UTC().Format(time.DateTime)}}
	if err := p.Validate(); err != nil {
		return Result{}, err
	}
	d, err := h.delivery(ctx, jobs.Job{UUID: uuid, Type: Send.Name, Attempt: 1, MaxAttempts: 1,
		Data: Send.New(p).Data}, p)
	if err != nil {
		return Result{}, err
	}
	d.unlimited = true
	err = d.run(ctx, p)
	var r Result
	if raw, _ := run.Result(); raw != nil {
		err = errors.Join(err, json.Unmarshal(raw, &r))
	}
	return r, err
}

// Greet connects to t's server as far as its greeting and leaves, or asks a mail
// service whether anybody is there; no credentials and no mail are sent.
func (h *Handler) Greet(ctx context.Context, t Transport) error {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	if slices.Contains(provider.Names(), t.Driver) {
		return h.greetService(ctx, t)
	}
	raw, err := h.pool.connect(ctx, t, "tcp", t.Address())
	if err != nil {
		return err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	var conn net.Conn = outbound.Limit(raw, answerLimits)
	if t.TLS == TLSImplicit {
		secure := &tls.Config{MinVersion: tls.VersionTLS12}
		if h.c.TLS != nil {
			secure = h.c.TLS.Clone()
		}
		secure.ServerName = t.Host
		conn = tls.Client(conn, secure)
	}
	greeted, err := smtp.NewClient(conn, t.Host)
	if err != nil {
		return shorten(fmt.Errorf("waiting for the greeting: %w", err))
	}
	return shorten(greeted.Quit())
}

// greetTime bounds a visit that only waits for a greeting.
const greetTime = 10 * time.Second
