package mail

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/smtp"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// greetTime bounds a visit that only waits for a greeting.
const greetTime = 10 * time.Second

// Greet connects to t's server as far as its greeting and leaves; no
// credentials and no mail are sent.
func (h *Handler) Greet(ctx context.Context, t Transport) error {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
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
