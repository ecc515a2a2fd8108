package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/conditions"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) healthCommand() *cobra.Command {
	var checks []string
	command := &cobra.Command{
		Use:   "health",
		Short: "Ask the running service whether it is ready (for Docker's HEALTHCHECK)",
		Long: `Asks /readyz of the service that runs with the same configuration: it is ready while no failing condition
holds. Where HTTP is disabled it measures the conditions itself. --check asks for single conditions,
warnings included.

Exit codes: 0 ready · 1 not ready`,
		Example: "  cmsjobs health\n  cmsjobs health --check no_worker,no_backup",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.load()
			if err != nil {
				return err
			}
			if !l.HTTP.Enabled {
				return a.withServices(c, func(ctx context.Context, r *app.Services) error { return a.healthByItself(ctx, r, checks) })
			}
			ctx, cancel := context.WithTimeout(c.Context(), 4*time.Second)
			defer cancel()
			return a.askReady(ctx, l.HTTP.Listen, l.HTTP.TLSCert != "", checks)
		},
	}
	command.Flags().StringSliceVar(&checks, "check", nil, "ask for these conditions alone")
	return command
}

// healthByItself measures the conditions where no service can be asked.
func (a *commandLine) healthByItself(ctx context.Context, r *app.Services, checks []string) error {
	e, err := r.Evaluator(nil)
	if err != nil {
		return err
	}
	for _, name := range checks {
		if !slices.Contains(conditions.Names(), name) {
			return app.Usagef("there is no check %q; there are %s", name, strings.Join(conditions.Names(), ", "))
		}
	}
	var failing []string
	for _, s := range e.Evaluate(ctx) {
		if s.Active && (slices.Contains(checks, s.Name) || len(checks) == 0 && s.Severity == conditions.Failing) {
			failing = append(failing, s.Name+": "+s.Detail)
		}
	}
	if len(failing) > 0 {
		return fmt.Errorf("not ready: %s", strings.Join(failing, "; "))
	}
	_, err = fmt.Fprintln(a.out, "ready")
	return err
}

// askReady asks the service on this host.
func (a *commandLine) askReady(ctx context.Context, listen string, secure bool, checks []string) error {
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz?"+url.Values{"check": {strings.Join(checks, ",")}}.Encode(), nil)
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
