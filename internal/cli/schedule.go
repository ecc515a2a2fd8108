package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/crontab"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) scheduleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "schedule",
		Short:   "Show and change the schedule",
		Example: "  cmsjobs schedule list\n  cmsjobs schedule run backup.generate",
	}
	change := func(use, short string, do func(context.Context, *app.Services, string) error) *cobra.Command {
		return &cobra.Command{Use: use + " NAME", Short: short, Example: "  cmsjobs schedule " + use +
			" backup.generate", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeEntries(),
			RunE: func(c *cobra.Command, args []string) error {
				return a.withServices(c, func(ctx context.Context, r *app.Services) error {
					return do(ctx, r, args[0])
				})
			}}
	}
	c.AddCommand(a.scheduleListCommand(),
		change("run", "Enqueue an entry's job now", a.runSchedule),
		change("pause", "Stop an entry on all instances", func(ctx context.Context, r *app.Services,
			name string) error {
			return a.pauseSchedule(ctx, r, name, true)
		}),
		change("continue", "End the pause of an entry", func(ctx context.Context, r *app.Services, name string) error {
			return a.pauseSchedule(ctx, r, name, false)
		}),
		a.scheduleChangeCommand(), a.scheduleHistoryCommand(), a.scheduleImportCommand())
	return a.unmaskedFlag(c)
}

func (a *commandLine) scheduleListCommand() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the entries, their next and last ticks",
		Example: "  cmsjobs schedule list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.withServices(c, a.listSchedule) }}
}

func (a *commandLine) listSchedule(ctx context.Context, r *app.Services) error {
	s, err := r.Scheduler()
	if err != nil {
		return err
	}
	entries, err := s.Schedules(ctx)
	if err != nil {
		return err
	}
	zone, err := r.ScheduleZone(ctx)
	if err != nil {
		return err
	}
	v, err := r.Viewer(a.unmasked)
	if err != nil {
		return err
	}
	now := a.Now()
	cells := make([][]string, len(entries))
	for i, e := range entries {
		next, last := nextTick(e, zone), "never"
		if e.Last != nil {
			last = strings.TrimSuffix(display.Ago(e.Last.Tick, now)+", "+e.Last.Outcome+" in "+took(*e.Last), " in –")
		}
		cells[i] = []string{e.Name, e.Cron, e.Type, next, last, e.CatchUp}
	}
	return a.list(ops.ItemsOf(entries, v.Schedule), []string{"ENTRY", "CRON", "TYPE", "NEXT", "LAST", "MISSED"}, cells,
		"The timetable is empty.")
}

// took is how long a tick's job ran.
func took(t jobs.TickRecord) string {
	if t.Duration == 0 {
		return "–"
	}
	return t.Duration.String()
}

func (a *commandLine) runSchedule(ctx context.Context, r *app.Services, name string) error {
	control, err := r.Control()
	if err != nil {
		return err
	}
	entry, err := control.Schedule(ctx, name)
	if err != nil {
		return err
	}
	receipt, err := control.RunSchedule(ctx, name)
	if err != nil {
		return err
	}
	return a.list(ops.EnqueuedView(jobs.Spec{Type: entry.Type}, receipt, a.Now()), []string{"ENQUEUED", "UUID"},
		[][]string{{name, receipt.UUID}}, "")
}

func (a *commandLine) pauseSchedule(ctx context.Context, r *app.Services, name string, paused bool) error {
	_, view, err := a.changedEntry(ctx, r, name, jobs.ScheduleChange{Paused: &paused})
	if err != nil {
		return err
	}
	word := map[bool]string{true: "paused", false: "continues"}[paused]
	return a.list(view, []string{"ENTRY", ""}, [][]string{{name, word}}, "")
}

// changedEntry changes an entry and returns it as it is then, and as people see it.
func (a *commandLine) changedEntry(ctx context.Context, r *app.Services, name string,
	change jobs.ScheduleChange) (entry jobs.ScheduleRecord, view any, err error) {
	control, err := r.Control()
	if err != nil {
		return entry, nil, err
	}
	entry, err = control.ChangeSchedule(ctx, name, change)
	if errors.Is(err, jobs.ErrInvalid) {
		return entry, nil, app.UsageError{Err: err}
	}
	if err != nil {
		return entry, nil, err
	}
	v, err := r.Viewer(a.unmasked)
	if err != nil {
		return entry, nil, err
	}
	return entry, v.Schedule(entry), nil
}

func (a *commandLine) scheduleChangeCommand() *cobra.Command {
	var cron string
	var change jobs.ScheduleChange
	c := &cobra.Command{Use: "change NAME", Short: "Change when an entry is due, on all instances",
		Long: `Changes when an entry is due, on all instances and from now on. The change outlasts a restart and
stands before the configuration until --reset takes it back.`,
		Example: "  cmsjobs schedule change backup.generate --cron \"30 4 * * *\"\n" +
			"  cmsjobs schedule change backup.generate --reset",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeEntries(),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("cron") {
				change.Cron = &cron
			}
			if change.Reset == (change.Cron != nil) {
				return app.Usagef("say what to change: --cron EXPRESSION, or --reset")
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return a.changeSchedule(ctx, r, args[0], change)
			})
		}}
	c.Flags().StringVar(&cron, "cron", "", "five fields in the schedule's zone, @daily, or \"@every 90m\"")
	c.Flags().BoolVar(&change.Reset, "reset", false, "as the configuration has it, not paused")
	return c
}

// changeSchedule changes an entry and says when it is due then.
func (a *commandLine) changeSchedule(ctx context.Context, r *app.Services, name string,
	change jobs.ScheduleChange) error {
	entry, view, err := a.changedEntry(ctx, r, name, change)
	if err != nil {
		return err
	}
	zone, err := r.ScheduleZone(ctx)
	if err != nil {
		return err
	}
	return a.list(view, []string{"ENTRY", "CRON", "NEXT"}, [][]string{{name, entry.Cron,
		nextTick(entry, zone)}}, "")
}

// nextTick is when an entry is due next.
func nextTick(e jobs.ScheduleRecord, zone *time.Location) string {
	if len(e.Next) == 0 {
		return "paused"
	}
	return e.Next[0].In(zone).Format("Mon 02 Jan 15:04 MST")
}

func (a *commandLine) scheduleHistoryCommand() *cobra.Command {
	var p jobs.Page
	c := &cobra.Command{Use: "history [NAME]", Short: "List ticks and what became of their jobs",
		Example: "  cmsjobs schedule history backup.generate", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeEntries(),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				list, err := r.Store.Ticks(ctx, strings.Join(args, ""), p)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list.Items))
				for i, t := range list.Items {
					cells[i] = []string{t.Entry, t.Tick.Format(time.DateTime), t.Outcome, took(t), t.UUID, t.Note}
				}
				v, err := r.Viewer(a.unmasked)
				if err != nil {
					return err
				}
				return a.list(ops.Listed(list, p, v.Tick), []string{"ENTRY", "TICK (UTC)", "OUTCOME", "TOOK", "JOB",
					"NOTE"}, cells, "No tick so far.")
			})
		}}
	pageFlags(c, &p)
	return c
}

func (a *commandLine) tickCommand() *cobra.Command {
	var atMost time.Duration
	c := &cobra.Command{
		Use:   "tick",
		Short: "Enqueue due schedule entries, run due jobs, and exit",
		Long: `For hosts without long-running processes: a cron line that says this every minute replaces "run".
Several at once, on any number of hosts, do no harm.

` + exitHelp,
		Example: "  * * * * * cmsjobs --cms /var/www/site tick",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				done, err := r.Tick(ctx, atMost)
				if err != nil {
					return err
				}
				n := func(v int) string { return strconv.Itoa(v) }
				return a.list(done, []string{"ENQUEUED", "MISSED", "SKIPPED", "RAN", "FAILED"},
					[][]string{{n(done.Enqueued), n(done.Missed), n(done.Skipped), n(done.Ran), n(done.Failed)}}, "")
			})
		},
	}
	c.Flags().DurationVar(&atMost, "at-most", 55*time.Second, "stop claiming after so long")
	return c
}

// maxCrontab bounds the file that schedule import reads.
const maxCrontab = 1 << 20

func (a *commandLine) scheduleImportCommand() *cobra.Command {
	var o crontab.Options
	c := &cobra.Command{Use: "import FILE", Short: "Write a crontab as sections of the configuration",
		Long: `Reads a crontab, or the output of php artisan schedule:list --json (- is standard input), and
prints the sections external.commands and schedule.entries for the configuration. Nothing is
changed: read them, put them into the file, and remove the lines of the crontab. A line that cannot
become an entry is printed as a comment with its reason.`,
		Example: "  crontab -l | cmsjobs schedule import -\n  cmsjobs schedule import /etc/crontab --system\n  php " +
			"artisan " +
			"schedule:list --json | cmsjobs --cms /var/www/site schedule import -",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return app.UsageError{Err: err}
			}
			if o.Dir == "" {
				o.Dir = a.global.cms
			}
			entries, left, err := crontab.Read(text, o)
			if err != nil {
				return app.UsageError{Err: err}
			}
			yaml, err := crontab.YAML(entries, left)
			if err == nil {
				_, err = a.out.Write(yaml)
			}
			return err
		}}
	c.Flags().BoolVar(&o.System, "system", false, "each line names a user, as in /etc/crontab and /etc/cron.d")
	c.Flags().StringVar(&o.Dir, "dir", "", "where commands of Laravel's scheduler run (default: --cms)")
	return c
}

func (a *commandLine) readFile(name string) ([]byte, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxCrontab+1))
	if err == nil && len(text) > maxCrontab {
		err = fmt.Errorf("%s has more than %d bytes", name, maxCrontab)
	}
	return text, err
}
