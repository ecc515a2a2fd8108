package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/setup"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/overview"
)

func (a *commandLine) doctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: `Looks at the configuration, the database, the tables, the clocks, the folders, the workers and the
queues, and all conditions that the service watches, and says how to fix what it finds. It changes
nothing but our own tables' version.

Exit codes: 0 nothing is marked fail · 1 something is (with --strict: or warn) · 2 the
configuration has faults · 3 database not usable`,
		Example: "  cmsjobs --cms /var/www/site doctor\n  cmsjobs doctor --json\n  cmsjobs doctor --strict",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var told []siteFindings
			err := a.eachSite(func(site string) error {
				found, err := a.examineSite(c.Context(), site)
				told = append(told, siteFindings{site, found})
				return err
			})
			return errors.Join(a.printJSONOf(told), err)
		},
	}
	command.Flags().BoolVar(&a.strict, "strict", false, "warnings make the exit code 1, too")
	return command
}

// siteFindings are those of one site; its name is "" where there is one.
type siteFindings struct {
	Site     string           `json:"site"`
	Findings []doctor.Finding `json:"findings"`
}

// examineSite opens a site, "" for the only one, and examines it. It prints what it finds
// for people at once.
func (a *commandLine) examineSite(ctx context.Context, site string) ([]doctor.Finding, error) {
	if site != "" && !a.global.json {
		fmt.Fprintf(a.out, "site %s\n", site)
	}
	l, err := a.loadSite(site)
	if err != nil {
		return nil, err
	}
	r, err := a.Open(ctx, l)
	if err != nil {
		f := []doctor.Finding{{Check: "database", Status: doctor.Fail, What: err.Error(),
			Fix: "fix what the message says, then run cmsjobs doctor again"}}
		return f, errors.Join(a.printFindings(f), err)
	}
	defer a.closing(r)
	return a.examine(ctx, r)
}

func (a *commandLine) examine(ctx context.Context, r *app.Services) ([]doctor.Finding, error) {
	all := doctor.Run(ctx, r)
	bad := 0
	for _, f := range all {
		if f.Status == doctor.Fail || a.strict && f.Status == doctor.Warn {
			bad++
		}
	}
	if err := a.printFindings(all); err != nil {
		return all, err
	}
	if bad > 0 {
		return all, fmt.Errorf("doctor: %s", display.Plural(bad, "finding needs", "findings need")+" action")
	}
	return all, nil
}

// printJSONOf prints the findings of all sites as one document.
func (a *commandLine) printJSONOf(told []siteFindings) error {
	switch {
	case !a.global.json, len(told) == 0, len(told) == 1 && told[0].Findings == nil:
		return nil
	case len(told) == 1 && told[0].Site == "":
		return a.printJSON(told[0].Findings)
	}
	return a.printJSON(told)
}

// findingTexts are the sentences of findings in the language of the environment; nil is
// English. Conditions are named as on the pages.
func (a *commandLine) findingTexts() (map[string]string, error) {
	if setup.Language(a.environ) != "vi" {
		return nil, nil
	}
	texts, err := doctor.Vietnamese()
	if err != nil {
		return nil, err
	}
	named, err := overview.Texts("vi")
	maps.Copy(texts, named)
	return texts, err
}

// printFindings prints findings for people.
func (a *commandLine) printFindings(all []doctor.Finding) error {
	if a.global.json {
		return nil
	}
	texts, err := a.findingTexts()
	if err != nil {
		return err
	}
	for _, f := range all {
		f = f.In(texts)
		if _, err := fmt.Fprintf(a.out, "%-4s  %-14s %s\n", f.Status, f.Check, display.Printable(f.What)); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(a.out, "      %-14s → %s\n", "", f.Fix)
		}
	}
	return nil
}

func (a *commandLine) healthCommand() *cobra.Command {
	var checks []string
	command := &cobra.Command{
		Use:   "health",
		Short: "Ask the running service whether it is ready (for Docker's HEALTHCHECK)",
		Long: `Asks /readyz of the service that runs with the same configuration: it is ready while no failing
condition holds. Where HTTP is disabled it measures the conditions itself. --check asks for
single conditions, warnings included.

Exit codes: 0 ready · 1 not ready`,
		Example: "  cmsjobs health\n  cmsjobs health --check no_worker,no_backup",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.loadSite(a.global.site)
			if err != nil {
				return err
			}
			if !l.HTTP.Enabled {
				return a.withServices(c, func(ctx context.Context, r *app.Services) error {
					return a.healthByItself(ctx, r, checks)
				})
			}
			ctx, cancel := context.WithTimeout(c.Context(), 4*time.Second)
			defer cancel()
			return a.askReady(ctx, l, checks)
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
	return a.sayReady()
}

func (a *commandLine) sayReady() error {
	if a.global.json {
		return a.printJSON(map[string]bool{"ready": true})
	}
	_, err := fmt.Fprintln(a.out, "ready")
	return err
}

// askReady asks the service on this host.
func (a *commandLine) askReady(ctx context.Context, l *config.Loaded, checks []string) error {
	listen, secure, base := l.HTTP.Listen, l.HTTP.TLSCert != "", l.Base()
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
		if err := conn.Close(); err != nil {
			return err
		}
		return a.sayReady()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+base+
		"/readyz?"+
		url.Values{"check": {strings.Join(checks, ",")}}.Encode(), nil)
	if err != nil {
		return err
	}
	if own := l.Host(); own != "" {
		request.Host = own
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
	return a.sayReady()
}

func (a *commandLine) breakersCommand() *cobra.Command {
	c := &cobra.Command{Use: "breakers", Short: "See what is left alone because it fails, and try it again",
		Long: "A mail server, bucket or host that fails again and again is left alone for a while; its jobs wait " +
			"without losing attempts.",
		Example: "  cmsjobs breakers list\n  cmsjobs breakers reset smtp:mail.example.com:587"}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List everything that ever failed, what is out first",
		Example: "  cmsjobs breakers list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				list, err := r.Breakers.List(ctx)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list))
				for i, b := range list {
					cells[i] = []string{b.Dependency, string(b.State), strconv.Itoa(b.Failures),
						display.Ago(b.RetryAt, a.Now()), display.Short(b.LastError, 80)}
				}
				return a.list(list, []string{"DEPENDENCY", "STATE", "FAILURES", "NEXT TRY", "ERROR"}, cells,
					"Nothing has failed.")
			})
		}},
		&cobra.Command{Use: "reset DEPENDENCY", Short: "Use it again at once", Example: "  cmsjobs breakers reset " +
			"smtp:mail.example.com:587", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				return a.withServices(c, func(ctx context.Context, r *app.Services) error {
					was, err := r.Breakers.Reset(ctx, args[0])
					if err == nil && !was {
						err = fmt.Errorf("%q never failed; see cmsjobs breakers list: %w", args[0], jobs.ErrNotFound)
					}
					if err != nil {
						return err
					}
					return a.list(map[string]string{"reset": args[0]}, []string{"RESET"}, [][]string{{args[0]}}, "")
				})
			}})
	return c
}
