package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
)

func (a *commandLine) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show and check the configuration",
		Example: "  cmsjobs config show\n  cmsjobs config check"}
	c.AddCommand(a.configShowCommand(), a.configCheckCommand(), &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with every key, its default and what it does",
		Example: "  cmsjobs config example > cmsjobs.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Example())
			return err
		},
	})
	return c
}

func (a *commandLine) configShowCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Print every value and where it came from; secrets are masked",
		Example: "  cmsjobs --cms /var/www/site config show\n  cmsjobs config show --all --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.loadSite(a.global.site)
			if l == nil {
				return err
			}
			var values []config.Value
			var cells [][]string
			for _, v := range l.Values() {
				if all || v.Origin != "default" {
					values = append(values, v)
					cells = append(cells, []string{v.Path, v.Text, v.Origin})
				}
			}
			nothing := "Everything has its default; --all shows them."
			return errors.Join(a.list(values, []string{"KEY", "VALUE", "FROM"}, cells, nothing), err)
		},
	}
	c.Flags().BoolVar(&all, "all", true, "defaults too; --all=false shows only values that were set")
	return c
}

func (a *commandLine) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Find all faults of the configuration at once",
		Long: "Finds all faults of the configuration at once. Exit code 2 when there is one.\nTo check the " +
			"database and the folders, run: cmsjobs doctor",
		Example: "  cmsjobs --config cmsjobs.yaml config check",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			err := a.checkConfig()
			var faults config.Faults
			if errors.As(err, &faults) && a.global.json {
				return errors.Join(a.printJSON(map[string]any{"ok": false, "faults": faults}), err)
			}
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(map[string]any{"ok": true, "faults": []string{}})
			}
			_, err = fmt.Fprintln(a.out, "The configuration has no fault.")
			return err
		},
	}
}

// load reads the configuration of the site that the command is for, with the words of
// the command line on top.
func (a *commandLine) load(more ...config.Flag) (*config.Loaded, error) {
	l, err := a.loadSite(a.global.site, more...)
	switch {
	case l == nil || a.global.site != "" || len(l.Sites) == 0:
		return l, err
	case len(l.Sites) == 1:
		return a.loadSite(l.Sites[0], more...)
	}
	return nil, errors.Join(err, app.Usagef("the configuration has several sites: name one with --site: %s",
		strings.Join(l.Sites, ", ")))
}

// loadSite reads the configuration of one site; "" is what all share.
func (a *commandLine) loadSite(site string, more ...config.Flag) (*config.Loaded, error) {
	var flags []config.Flag
	for _, pair := range a.global.set {
		path, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, app.Usagef("--set wants key=value, not %q", pair)
		}
		flags = append(flags, config.Flag{Path: path, Value: value, Name: "--set"})
	}
	for _, f := range []config.Flag{
		{Path: "cms.dir", Value: a.global.cms, Name: "--cms"},
		{Path: "database.dsn", Value: a.global.dsn, Name: "--dsn"},
		{Path: "log.level", Value: a.global.logLevel, Name: "--log-level"},
	} {
		if f.Value != "" {
			flags = append(flags, f)
		}
	}
	l, err := config.Load(config.Sources{File: a.global.file, Environ: a.environ, Flags: append(flags, more...),
		Site: site})
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		err = app.UsageError{Err: err}
	}
	if err == nil {
		err = app.CheckLimits(l)
	}
	return l, err
}

// changed lists the flags of a command that were given, as configuration.
func changed(c *cobra.Command, paths map[string]string) []config.Flag {
	var flags []config.Flag
	for name, path := range paths {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			flags = append(flags, config.Flag{Path: path, Value: strings.Trim(f.Value.String(), "[]"), Name: "--" +
				name})
		}
	}
	return flags
}

// openConfigured is load and open.
func (a *commandLine) openConfigured(ctx context.Context, more ...config.Flag) (*app.Services, error) {
	l, err := a.load(more...)
	if err != nil {
		return nil, err
	}
	return a.Open(ctx, l)
}

// openService is openLoaded for services that last: it waits for the database.
func (a *commandLine) openService(ctx context.Context, more ...config.Flag) (*app.Services, error) {
	l, err := a.load(more...)
	if err != nil {
		return nil, err
	}
	return a.OpenWaiting(ctx, l)
}

// withServices opens the services for one short command.
func (a *commandLine) withServices(c *cobra.Command, do func(context.Context, *app.Services) error) error {
	r, err := a.openConfigured(c.Context())
	if err != nil {
		return err
	}
	defer a.closing(r)
	return do(c.Context(), r)
}

// closing closes the services at the end of a command. What goes wrong then
// harms nothing any more.
func (a *commandLine) closing(r *app.Services) {
	if err := r.Close(); err != nil {
		r.Log.Debug("closing the database", "event", "database.close_failed", "error", err)
	}
}

// checkFiles adds what is wrong with the files that the configuration names, and that
// the service reads when it starts.
func checkFiles(l *config.Loaded, err error) error {
	var faults config.Faults
	if l == nil || err != nil && !errors.As(err, &faults) {
		return err
	}
	if path := l.Analytics.MMDB; path != "" {
		if _, broken := analytics.OpenCountries(path); broken != nil {
			return append(faults, config.Fault{Path: "analytics.mmdb", Problem: broken.Error()})
		}
	}
	return err
}
