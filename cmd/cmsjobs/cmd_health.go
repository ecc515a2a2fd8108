package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the running service whether it is ready (for Docker's HEALTHCHECK)",
		Long: `Asks /readyz of the service that runs with the same configuration. Where HTTP is disabled it asks the
database instead.

Exit codes: 0 ready · 1 not ready`,
		Example: "  cmsjobs health",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.load()
			if err != nil {
				return err
			}
			if !l.HTTP.Enabled {
				return a.withRooms(c, func(ctx context.Context, r *rooms) error { return r.db.PingContext(ctx) })
			}
			ctx, cancel := context.WithTimeout(c.Context(), 4*time.Second)
			defer cancel()
			return a.askReady(ctx, l.HTTP.Listen, l.HTTP.TLSCert != "")
		},
	}
}

// askReady asks the service on this host.
func (a *app) askReady(ctx context.Context, listen string, secure bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if secure { // the certificate is for another name than this one: a connection is all that can be asked
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the service does not answer on %s: %w", listen, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s %s", answer.Status, strings.TrimSpace(string(text)))
	}
	_, err = fmt.Fprintln(a.out, "ready")
	return err
}
