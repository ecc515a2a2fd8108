package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/measure"
)

// workFlags are the flags of a worker and the keys that they set.
var workFlags = map[string]string{
	"queue": "queue.queues", "concurrency": "queue.concurrency", "prefetch": "queue.prefetch", "memory": "queue.memory",
	"max-jobs": "queue.max_jobs", "max-time": "queue.max_time", "poll": "queue.poll", "grace": "queue.grace",
	"lease": "queue.lease", "name": "queue.worker_id",
}

func addWorkFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSlice("queue", nil, "queues to empty, in this order (repeat, or a,b)")
	f.IntP("concurrency", "n", 1, "jobs that run at once")
	f.Int("prefetch", 512, "jobs claimed ahead at most, when they are short; 0 is none")
	f.String("memory", "512MiB", "finish and exit with code 12 above this")
	f.Int("max-jobs", 0, "stop after so many jobs")
	f.String("max-time", "0s", "stop after so long")
	f.String("poll", "3s", "longest wait between two looks at an empty queue")
	f.String("grace", "30s", "how long running jobs may go on after TERM")
	f.String("lease", "90s", "how long a claim holds without being renewed")
	f.String("name", "", "what the worker's name begins with")
}

func (a *commandLine) workCommand() *cobra.Command {
	var o app.WorkerOptions
	c := &cobra.Command{
		Use:   "work",
		Short: "Run a worker",
		Long: `Runs a worker until TERM or INT: it then claims no more jobs, lets running jobs go on for the
grace period and releases what still runs, uncounted. It ends a second after the grace period at
the latest. A second signal ends the grace period at once.

` + exitHelp,
		Example: "  cmsjobs --cms /var/www/site work\n  cmsjobs work --queue high,default -n 4\n  cmsjobs work " +
			"--stop-when-empty",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			shared, err := a.loadSite("", changed(c, workFlags)...)
			if err != nil {
				return err
			}
			if len(shared.Sites) > 0 && !o.Once && !o.StopWhenEmpty {
				return a.runSites(c, shared, a.workOf(o))
			}
			open := a.openService
			if o.Once || o.StopWhenEmpty { // anyone who starts these starts them again
				open = a.openConfigured
			}
			r, err := open(c.Context(), changed(c, workFlags)...)
			if err != nil {
				return a.abortedBeforeStart(c.Context(), err)
			}
			defer a.closing(r)
			a.stopBy(r)
			o.Alone = true
			return workOn(c.Context(), r, o, a.onAbort)
		},
	}
	addWorkFlags(c)
	c.Flags().BoolVar(&o.Once, "once", false, "run one job, if there is one, and stop")
	c.Flags().BoolVar(&o.StopWhenEmpty, "stop-when-empty", false, "stop when nothing is due")
	return c
}

// workOn runs the worker of one site.
func workOn(ctx context.Context, r *app.Services, o app.WorkerOptions, onAbort func(func())) error {
	r.OpenTracer()
	r.Activity = r.NewActivity()
	o.Ended = r.TraceRun
	if r.Config.Conditions.Enabled && !o.Once && !o.StopWhenEmpty {
		if err := r.WatchConditions([]string{"worker"}); err != nil {
			return err
		}
	}
	return r.Tracing(ctx, func() error {
		return r.ConditionsBeside(ctx, func() error { return r.Work(ctx, o, onAbort) })
	})
}

// onAbort keeps what the second signal does.
func (a *commandLine) onAbort(abort func()) { a.onSecondSignal.Store(&abort) }

func (a *commandLine) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run everything in one process: worker, scheduler, web",
		Long: `Runs the parts that the configuration enables in one process: the worker (queue.worker), the
scheduler (schedule.enabled) and the web (http.enabled). TERM or INT stops all of them gracefully.
With sites in the configuration it runs all of them, or the one that --site names.

` + exitHelp,
		Example: "  cmsjobs --cms /var/www/site run\n  cmsjobs --cms /var/www/site run -n 4",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			shared, err := a.loadSite("", changed(c, workFlags)...)
			if err != nil {
				return err
			}
			if len(shared.Sites) > 0 {
				return a.runSites(c, shared, a.partsOf)
			}
			r, err := a.openService(c.Context(), changed(c, workFlags)...)
			if err != nil {
				return a.abortedBeforeStart(c.Context(), err)
			}
			defer a.closing(r)
			a.stopBy(r)
			parts, err := r.Parts(a.onAbort)
			if err != nil {
				return err
			}
			if len(parts) == 0 {
				return app.Usagef("nothing to run: queue.worker, schedule.enabled and http.enabled are all off")
			}
			return r.Tracing(c.Context(), func() error { return app.Together(c.Context(), parts) })
		},
	}
	addWorkFlags(c)
	return c
}

func (a *commandLine) benchCommand() *cobra.Command {
	var o struct {
		jobs, slots, probes int
		depths              []int
		idle                time.Duration
		here                bool
	}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast jobs are enqueued, claimed and run",
		Long: `Measures jobs that do nothing: enqueued one by one and in bulk, worked off, picked up by an idle
worker, claimed over a few and over a million waiting ones, and what an idle worker asks of the
database and occupies. By default on a separate SQLite database in a temporary folder; --here
measures on the configured database, in the queue "cmsjobs-bench", takes its waiting jobs away
again and leaves its history there.`,
		Example: "  cmsjobs bench\n  cmsjobs --dsn mysql://root@127.0.0.1/bench bench --here --jobs 20000 --slots " +
			"100 --depth 1000,100000",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var r *app.Services
			var err error
			if o.here {
				r, err = a.openConfigured(c.Context(), benchFlags(o.slots)...)
			} else {
				var dir string
				if dir, err = os.MkdirTemp("", "cmsjobs-bench-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				r, err = a.openBench(c.Context(), dir, o.slots)
			}
			if err != nil {
				return err
			}
			defer a.closing(r)
			b := &measure.Bench{Services: r, Now: a.Now, Jobs: o.jobs, Probes: o.probes, Depths: o.depths,
				Idle: o.idle, Guest: o.here}
			figures, err := b.Run(c.Context())
			if err != nil {
				return err
			}
			cells := make([][]string, len(figures))
			for i, f := range figures {
				cells[i] = []string{f.Name, fmt.Sprintf("%.*f", f.Digits, f.Value), f.Unit}
			}
			return a.list(map[string]any{"store": r.Store.Describe(), "slots": o.slots, "jobs": o.jobs,
				"figures": figures}, []string{"FIGURE", "VALUE", "UNIT"}, cells, "")
		},
	}
	c.Flags().IntVar(&o.jobs, "jobs", 10000, "how many jobs are worked off")
	c.Flags().IntVar(&o.slots, "slots", 10, "slots of the worker")
	c.Flags().IntVar(&o.probes, "probes", 100, "how many pick-ups are timed")
	c.Flags().IntSliceVar(&o.depths, "depth", []int{1000, 100_000, 1_000_000}, "over how many waiting jobs claims "+
		"are measured, fewest first")
	c.Flags().DurationVar(&o.idle, "idle", 15*time.Second, "how long an idle worker is watched; 0 leaves it out")
	c.Flags().BoolVar(&o.here, "here", false, "measure on the configured database")
	return c
}

func benchFlags(slots int) []config.Flag {
	return []config.Flag{{Path: "queue.queues", Value: measure.Queue, Name: "bench"},
		{Path: "queue.memory", Value: "0", Name: "bench"}, // nobody would start it again
		{Path: "queue.concurrency", Value: fmt.Sprint(slots), Name: "bench"},
		{Path: "queue.prefetch", Value: fmt.Sprint(min(slots*10, 10000)), Name: "bench"},
		{Path: "log.level", Value: "warn", Name: "bench"}}
}

func (a *commandLine) openBench(ctx context.Context, dir string, slots int) (*app.Services, error) {
	path := filepath.Join(dir, "bench.sqlite")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: "sqlite:" + path})
	if err != nil {
		return nil, err
	}
	if _, err := tables.CreateTables(ctx, db, tables.Stock, ""); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	empty := filepath.Join(dir, "cmsjobs.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return nil, err
	}
	flags := append(benchFlags(slots), config.Flag{Path: "database.dsn", Value: "sqlite:" + path, Name: "bench"})
	l, err := config.Load(config.Sources{File: empty, Flags: flags})
	if err != nil {
		return nil, err
	}
	return a.Open(ctx, l)
}

func (a *commandLine) scaleCommand() *cobra.Command {
	var worker string
	var reset bool
	command := &cobra.Command{
		Use:   "scale [SLOTS]",
		Short: "Change how many jobs workers run at once, without a restart",
		Long: `Changes how many jobs each worker runs at once, from its next heartbeat on (2 to 6 s). More slots
begin jobs at once. Where there are fewer, running jobs end as usual and no other begins until
as many run as there are slots.

The order holds for all workers, also for those that start later, until another or --reset.
With --worker it holds for one worker, for as long as it lives.`,
		Example: "  cmsjobs workers scale 8\n  cmsjobs workers scale 2 --worker web1:4711:0a1b2c\n" +
			"  cmsjobs workers scale --reset",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			slots, err := slotsOf(args, reset)
			if err != nil {
				return err
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				control, err := r.Control()
				if err != nil {
					return err
				}
				workers, err := control.Scale(ctx, worker, slots)
				return a.ordered(r, err, scaled(workers, slots, worker))
			})
		},
	}
	command.Flags().StringVar(&worker, "worker", "", "only the worker with this id (cmsjobs workers shows it)")
	command.Flags().BoolVar(&reset, "reset", false, "take the order back")
	return command
}

// scaled says what workers do at their next heartbeat.
func scaled(workers int64, slots int, worker string) string {
	switch {
	case slots > 0:
		return display.Sprintf("%d {worker has|workers have} %d {slot|slots} at the next heartbeat.", workers, slots)
	case worker != "":
		return "The worker follows the order for all workers, or its configuration, at the next heartbeat."
	}
	return display.Sprintf("%d {worker has|workers have} the configured number of slots at the next heartbeat.",
		workers)
}

// slotsOf is the number that was written; 0 is that it is reset.
func slotsOf(args []string, reset bool) (int, error) {
	if reset != (len(args) == 0) {
		return 0, app.Usagef("write how many slots, from 1 to %d, or --reset", jobs.MaxSlots)
	}
	if reset {
		return 0, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > jobs.MaxSlots {
		return 0, app.Usagef("a worker has from 1 to %d slots, not %q", jobs.MaxSlots, args[0])
	}
	return n, nil
}
