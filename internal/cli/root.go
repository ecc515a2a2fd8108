package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
)

// The groups that the help lists.
const (
	groupStart  = "start"
	groupJobs   = "jobs"
	groupWorker = "workers"
	groupParts  = "parts"
	groupCare   = "care"
)

func (a *commandLine) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cmsjobs",
		Short: "Background jobs for a CMS",
		Long: `cmsjobs runs the background jobs of a Botble/Laravel CMS: it claims rows of its jobs table, runs
them and shows their results. It reads the CMS's .env when --cms names its folder.

` + exitHelp,
		Example:       "  cmsjobs demo\n  cmsjobs --cms /var/www/site doctor\n  cmsjobs --cms /var/www/site run",
		SilenceErrors: true,
		// SuggestionsFor looks as far as this.
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Version:                    a.Version,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return app.Usagef("%w\nSee: %s --help", err, c.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVarP(&a.global.file, "config", "c", "", "YAML file with the configuration (default ./cmsjobs.yaml or "+
		"/etc/cmsjobs/config.yaml)")
	flags.StringVar(&a.global.cms, "cms", "", "the CMS's folder; its .env names the database and more")
	flags.StringVar(&a.global.dsn, "dsn", "", "the database, for example mysql://user@host/name (a password is "+
		"better kept in the environment)")
	flags.StringArrayVar(&a.global.set, "set", nil, "set any key of the configuration: --set queue.poll=1s")
	flags.StringVar(&a.global.logLevel, "log-level", "", "debug, info, warn or error")
	flags.BoolVar(&a.global.json, "json", false, "print JSON for programs")
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here:"},
		&cobra.Group{ID: groupJobs, Title: "Jobs:"},
		&cobra.Group{ID: groupWorker, Title: "Workers:"},
		&cobra.Group{ID: groupParts, Title: "Parts of the CMS:"},
		&cobra.Group{ID: groupCare, Title: "Maintenance:"},
	)
	a.addCommands(root)
	root.InitDefaultHelpCmd()
	requireSubcommand(root)
	a.completeFlags(root)
	return root
}

func (a *commandLine) addCommands(root *cobra.Command) {
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupStart, a.demoCommand(), a.runCommand(), a.doctorCommand(), a.configCommand(), a.migrateCommand())
	add(groupJobs, a.enqueueCommand(), a.jobsCommand(), a.failedCommand(), a.typesCommand())
	add(groupWorker, a.workCommand(), a.workersCommand(), a.queuesCommand(), a.pauseCommand(), a.continueCommand(),
		a.restartCommand(), a.scheduleCommand(), a.tickCommand())
	add(groupParts, a.sitemapCommand(), a.mediaCommand(), a.analyticsCommand(), a.mailCommand(), a.backupCommand(),
		a.webhookCommand())
	add(groupCare, a.cleanCommand(), a.tokenCommand(), a.accessCommand(), a.healthCommand(), a.breakersCommand(),
		a.benchCommand(), a.manCommand(), a.versionCommand())

	root.AddCommand(a.laravelCommands()...)
}

// requireSubcommand makes a group of commands refuse a word that is none of them;
// cobra by itself prints the help and says that all is well.
func requireSubcommand(c *cobra.Command) {
	for _, child := range c.Commands() {
		requireSubcommand(child)
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return app.Usagef("there is no command %q below %q%s\nSee: %s --help", args[0], c.CommandPath(), hint,
				c.CommandPath())
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		return
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return app.Usagef("%w\nSee: %s --help", err, c.CommandPath())
			}
			return nil
		}
	}
}

// load reads the configuration with the words of the command line on top.
func (a *commandLine) load(more ...config.Flag) (*config.Loaded, error) {
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
	l, err := config.Load(config.Sources{File: a.global.file, Environ: a.environ, Flags: append(flags, more...)})
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
