package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"golang.org/x/term"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/memory"
	"github.com/cmsjobs/cmsjobs/internal/processors"
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
	flags.StringVar(&a.global.site, "site", "", "which of the sites of the configuration (sites)")
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
	add(groupStart, a.demoCommand(), a.setupCommand(), a.runCommand(), a.terminal().TopCommand(), a.doctorCommand(),
		a.configCommand(),
		a.phpCommand(),
		a.migrateCommand())
	add(groupJobs, a.enqueueCommand(), a.jobsCommand(), a.failedCommand(), a.batchesCommand(),
		a.typesCommand())
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
			c.SuggestionsMinimumDistance = c.Root().SuggestionsMinimumDistance // cobra does not pass it on
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
				return wrongArguments(c, err, len(args))
			}
			return nil
		}
	}
}

// cobrasCount are the beginnings of cobra's own errors.
var cobrasCount = regexp.MustCompile(`^(accepts|requires|unknown command) `)

// wrongArguments says what a command takes; cobra only counts.
func wrongArguments(c *cobra.Command, err error, given int) error {
	takes := strings.TrimPrefix(c.Use, c.Name())
	switch {
	case !cobrasCount.MatchString(err.Error()):
		return app.Usagef("%w\nSee: %s --help", err, c.CommandPath()) // a check made here
	case takes == "":
		return app.Usagef("%s takes no arguments; given: %d\nSee: %[1]s --help", c.CommandPath(), given)
	}
	return app.Usagef("write %s%s; arguments given: %d\nSee: %[1]s --help", c.CommandPath(), takes, given)
}

// Execute runs one command of the program whose own file is self, and returns
// the exit code.
func Execute(self, version string, args []string) int {
	a := &commandLine{
		Process: app.Process{Self: self, Version: version, Err: os.Stderr, Now: time.Now,
			StderrIsTTY: term.IsTerminal(int(os.Stderr.Fd())),
			Collector:   &memory.Collector{Fixed: config.CollectorIsSet()},
			Processors:  &processors.Share{Fixed: config.ProcessorsAreSet()}},
		out: os.Stdout, outIsTTY: term.IsTerminal(int(os.Stdout.Fd())), in: os.Stdin, environ: config.Environment(),
	}
	return a.run(args)
}

// run executes one command and returns the exit code. The first TERM, INT or
// HUP ends the command's context; the second one calls again.
func (a *commandLine) run(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	finished := make(chan struct{})
	defer close(finished)
	go a.handleSignals(signals, cancel, finished)

	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(a.Err, "cmsjobs:", err)
	}
	return exitCode(err)
}

func (a *commandLine) handleSignals(signals <-chan os.Signal, cancel func(), finished <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case <-finished:
			return
		case <-signals:
		}
		switch {
		case n == 1:
			a.countDown(false)
			cancel()
		case n == 2 && a.onSecondSignal.Load() != nil:
			a.countDown(true)
			(*a.onSecondSignal.Load())()
		default:
			os.Exit(130) // a third signal, or a command that does not listen
		}
	}
}

func (a *commandLine) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  cmsjobs version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" +
				runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v["commit"] = s.Value
					}
				}
			}
			if a.global.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "cmsjobs %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			return err
		},
	}
}

func (a *commandLine) manCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write manual pages into a folder",
		Example: "  cmsjobs man /usr/local/share/man/man1 && man cmsjobs-backup", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// A fixed date: the same program writes the same pages.
			epoch := time.Unix(0, 0).UTC()
			root := c.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "CMSJOBS", Section: "1", Source: "cmsjobs " +
				a.Version, Date: &epoch}, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		}}
}
