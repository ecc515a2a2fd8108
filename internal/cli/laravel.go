package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/php/importer"
)

// laravelCommands are commands in the spelling of Laravel and of spatie's backups,
// with their options, for people and scripts that know them.
func (a *commandLine) laravelCommands() []*cobra.Command {
	var list []*cobra.Command
	for name, c := range map[string]*cobra.Command{
		"queue:failed": a.failedListCommand(), "queue:retry": a.failedRetryCommand(),
		"queue:forget": a.failedDeleteCommand(),
		"queue:flush":  a.failedFlushCommand(), "queue:prune-failed": a.failedPruneCommand(),
		"schedule:list": a.scheduleListCommand(), "schedule:run": a.tickCommand(),
		"backup:list": a.backupListCommand(), "backup:clean": a.backupPruneCommand(),
	} {
		_, args, _ := strings.Cut(c.Use, " ")
		c.Use = strings.TrimSpace(name + " " + args)
		list = append(list, c)
	}
	list = append(list, a.queueWorkCommand(), a.queueClearCommand(), a.queueMonitorCommand(), a.backupRunCommand())
	for _, c := range list {
		c.Hidden = true
	}
	return list
}

// supervisorFiles are where distributions keep Supervisor's programs.
var supervisorFiles = []string{"/etc/supervisor/conf.d/*.conf", "/etc/supervisord.d/*.ini", "/etc/supervisor.d/*.ini"}

func (a *commandLine) phpCommand() *cobra.Command {
	c := &cobra.Command{Use: "php", Short: "Take over PHP's own jobs",
		Example: "  cmsjobs --cms /var/www/site php import"}
	c.AddCommand(&cobra.Command{
		Use:   "import [FILE…]",
		Short: "Show the settings that do what Supervisor or Horizon does now",
		Long: `Reads Supervisor's programs (the files, or those of this host) and the CMS's config/horizon.php, and
prints the settings "php:" that run the same queues. It writes nothing and runs no PHP. What has
no setting here is said on standard error.`,
		Example: "  cmsjobs --cms /var/www/site php import\n  cmsjobs php import /etc/supervisor/conf.d/worker.conf",
		RunE:    func(_ *cobra.Command, files []string) error { return a.importPHP(files) },
	})
	return c
}

func (a *commandLine) importPHP(files []string) error {
	var plan importer.Plan
	if files == nil {
		for _, pattern := range supervisorFiles {
			found, err := filepath.Glob(pattern)
			if err != nil {
				return fmt.Errorf("looking for Supervisor's files: %w", err)
			}
			files = append(files, found...)
		}
	}
	for _, name := range files {
		text, err := readUpTo(name, importer.MaxFile+1)
		if err == nil {
			err = plan.Supervisor(name, text)
		}
		if err != nil {
			return app.UsageError{Err: err}
		}
	}
	l, err := a.load()
	if err != nil {
		return err
	}
	if dir := l.Config.CMS.Dir; dir != "" {
		env, err := cms.ReadEnv(dir)
		if err != nil {
			return err
		}
		c, err := laravel.Open(dir, env, "horizon")
		if err != nil {
			return err
		}
		plan.Horizon(c, cmp.Or(env["APP_ENV"], "production"))
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(a.Err, "# "+display.Printable(note))
	}
	if plan.Empty() {
		return errors.New("no worker of the database's queues was found: name Supervisor's file, or the CMS's folder " +
			"(--cms) for config/horizon.php")
	}
	_, err = fmt.Fprint(a.out, plan.YAML())
	return err
}

func readUpTo(name string, limit int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading Supervisor's file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return string(text), nil
}

var bareNumber = regexp.MustCompile(`^\d+$`)

// queueWorkCommand is work with Laravel's options: seconds and megabytes without a
// unit, and the name of the connection.
func (a *commandLine) queueWorkCommand() *cobra.Command {
	c := a.workCommand()
	c.Use, c.Short = "queue:work [CONNECTION]", "Run a worker (work, with Laravel's options)"
	c.Long = `Runs a worker like cmsjobs work. --sleep is the longest wait between two looks at an empty
queue; --memory without a unit is in megabytes, --max-time in seconds. --tries and --timeout are
the limits of jobs that have none, as in Laravel: every type here has its own (types in the
configuration), so they change nothing.

` + exitHelp
	c.Example = "  cmsjobs queue:work database --sleep=3 --tries=3 --timeout=60 --queue=high,default"
	c.Args = a.oneConnection
	f := c.Flags()
	f.Int("sleep", 3, "seconds between two looks at an empty queue")
	f.Int("tries", 0, "of jobs without their own limit")
	f.Int("timeout", 0, "seconds, of jobs without their own limit")
	f.Int("backoff", 0, "seconds, of jobs without their own backoff")
	f.Bool("force", false, "ignored: the service works in maintenance mode, too")
	f.Bool("daemon", false, "ignored: a worker goes on until it is stopped")
	run := c.RunE
	c.RunE = func(c *cobra.Command, _ []string) error {
		for name, unit := range map[string]string{"memory": "MiB", "max-time": "s"} {
			if given := c.Flags().Lookup(name); given.Changed && bareNumber.MatchString(given.Value.String()) {
				if err := c.Flags().Set(name, given.Value.String()+unit); err != nil {
					return app.UsageError{Err: err}
				}
			}
		}
		if sleep := c.Flags().Lookup("sleep"); sleep.Changed {
			poll := sleep.Value.String() + "s"
			if poll == "0s" {
				poll = "100ms"
			}
			if err := c.Flags().Set("poll", poll); err != nil {
				return app.UsageError{Err: err}
			}
		}
		return run(c, nil)
	}
	return c
}

// oneConnection takes the name of Laravel's queue connection, which is that of the
// configuration.
func (a *commandLine) oneConnection(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("one connection at most, not %d", len(args))
	}
	l, err := a.load()
	if err != nil || len(args) == 0 || args[0] == l.Database.Connection {
		return err
	}
	return fmt.Errorf("the connection is named %q here (database.connection), not %q", l.Database.Connection, args[0])
}

func (a *commandLine) queueClearCommand() *cobra.Command {
	var queue string
	c := &cobra.Command{Use: "queue:clear [CONNECTION]", Short: "Cancel all waiting jobs of a queue",
		Long: "Cancels all waiting jobs of a queue, as cmsjobs jobs cancel does: they stay in the history. PHP's own " +
			"rows are left alone.",
		Example: "  cmsjobs queue:clear database --queue=mail --force", Args: a.oneConnection}
	c.Flags().StringVar(&queue, "queue", "", "the queue (default: queue.default)")
	c.Flags().Bool("force", false, "do not ask: it never does")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			if queue == "" {
				queue = r.Config.Queue.Default
			}
			filter, _, err := a.waitingIn(queue)
			if err != nil {
				return err
			}
			total, err := r.History.Count(ctx, filter)
			if err != nil || total == 0 {
				return a.clearedOf(queue, 0, err)
			}
			done, err := r.Actions().Many(ctx, ops.Cancel, filter, total, func(int64) {})
			return a.clearedOf(queue, done, err)
		})
	}
	return c
}

// waitingIn is the filter for the waiting jobs of a queue; none says that no job can
// fit it.
func (a *commandLine) waitingIn(queue string) (filter jobs.Filter, none bool, err error) {
	parsed, err := a.filter(ops.Filter{Queue: []string{queue}, Status: []string{string(jobs.StatusQueued)}})
	if err != nil {
		return parsed, false, err
	}
	filter, none = ops.Selected(ops.Cancel, parsed)
	return filter, none, nil
}

func (a *commandLine) clearedOf(queue string, n int64, err error) error {
	if err != nil {
		return err
	}
	if a.global.json {
		return a.printJSON(ops.Changed{Count: n, Changed: n})
	}
	_, err = fmt.Fprint(a.out, display.Sprintf("Cleared %d {job|jobs} from the queue %s.\n", n, queue))
	return err
}

// monitored is the size of one queue, and whether it is over the limit.
type monitored struct {
	Queue   string `json:"queue"`
	Waiting int64  `json:"waiting"`
	Over    bool   `json:"over"`
}

func (a *commandLine) queueMonitorCommand() *cobra.Command {
	var most int64
	c := &cobra.Command{Use: "queue:monitor QUEUE[,QUEUE…]", Short: "Show the size of queues, and fail where it is " +
		"too large",
		Long: `Shows how many jobs wait in each queue. A queue may be written with its connection, as
database:default.

Exit codes: 0 no queue has more than --max · 1 one has`,
		Example: "  cmsjobs queue:monitor default,mail --max=100", Args: cobra.ExactArgs(1)}
	c.Flags().Int64Var(&most, "max", 1000, "how many waiting jobs are too many")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			stats, err := r.History.Stats(ctx)
			if err != nil {
				return err
			}
			return a.monitor(stats.Queues, strings.Split(args[0], ","), most)
		})
	}
	return c
}

func (a *commandLine) monitor(queues []jobs.QueueStats, names []string, most int64) error {
	var list []monitored
	var cells [][]string
	var over []string
	for _, name := range names {
		_, queue, qualified := strings.Cut(name, ":")
		if !qualified {
			queue = name
		}
		m := monitored{Queue: queue}
		if i := slices.IndexFunc(queues, func(q jobs.QueueStats) bool { return q.Queue == queue }); i >= 0 {
			m.Waiting = queues[i].Queued + queues[i].Delayed + queues[i].Foreign
		}
		status := "OK"
		if m.Over = m.Waiting > most; m.Over {
			status, over = "ALERT", append(over, queue)
		}
		list, cells = append(list, m), append(cells, []string{queue, strconv.FormatInt(m.Waiting, 10), status})
	}
	if err := a.list(ops.Items[monitored]{Items: list}, []string{"QUEUE", "WAITING", "STATUS"}, cells,
		"No queues."); err != nil {
		return err
	}
	if over != nil {
		return fmt.Errorf("more than %d jobs wait in %s", most, strings.Join(over, ", "))
	}
	return nil
}

// backupRunCommand is backup create in the words of spatie/laravel-backup.
func (a *commandLine) backupRunCommand() *cobra.Command {
	c := a.backupCreateCommand()
	c.Use, c.Short = "backup:run", "Create a backup now (backup create, with the options of spatie/laravel-backup)"
	c.Example = "  cmsjobs backup:run --only-db --disable-notifications"
	f := c.Flags()
	onlyDB := f.Bool("only-db", false, "as --only-database")
	f.Bool("disable-notifications", false, "ignored: a backup by hand notifies nobody")
	f.String("only-to-disk", "", "as --to")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		set := map[string]string{}
		if *onlyDB {
			set["only-database"] = "true"
		}
		if disk := f.Lookup("only-to-disk"); disk.Changed {
			set["to"] = disk.Value.String()
		}
		for name, value := range set {
			if err := f.Set(name, value); err != nil {
				return app.UsageError{Err: err}
			}
		}
		return run(c, args)
	}
	return c
}
