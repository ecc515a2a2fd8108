package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) queuesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "queues",
		Short:   "List queues with their depth, oldest job and workers",
		Example: "  cmsjobs queues",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				stats, err := r.History.Stats(ctx)
				if err != nil {
					return err
				}
				return a.listQueues(ops.Each(stats.Queues, ops.Queue), stats.MoreQueues)
			})
		},
	}
}

func (a *commandLine) listQueues(queues []ops.QueueView, more int) error {
	cells := ops.Each(queues, func(q ops.QueueView) []string {
		name := q.Name
		if q.Paused {
			name += " (paused)"
		}
		return []string{name, count(q.Queued), count(q.Delayed), count(q.Processing), count(q.Foreign),
			display.Span(milliseconds(q.OldestMS)), strconv.Itoa(q.Workers), strconv.Itoa(q.PHPProcesses)}
	})
	if more > 0 {
		cells = append(cells, []string{display.Sprintf("and %d more {queue|queues}", more)})
	}
	return a.list(ops.Items[ops.QueueView]{Items: queues}, []string{"QUEUE", "QUEUED", "DELAYED", "PROCESSING",
		"PHP'S OWN", "OLDEST", "WORKERS", "PHP PROCESSES"}, cells, "No queues.")
}

func (a *commandLine) batchesCommand() *cobra.Command {
	c := &cobra.Command{Use: "batches", Short: "List and show Laravel's batches of jobs",
		Example: "  cmsjobs batches list\n  cmsjobs batches show 9a1c4f0e-…"}
	var p jobs.Page
	list := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List batches of PHP jobs, newest first",
		Example: "  cmsjobs batches list --limit 50", Args: cobra.NoArgs,
		RunE: a.onBatches(func(ctx context.Context, r *app.Services, v ops.Viewer, _ []string) error {
			found, err := r.Batches().Batches(ctx, p)
			if err != nil {
				return err
			}
			return a.listBatches(ops.Listed(found, p, v.Batch))
		})}
	pageFlags(list, &p)
	show := &cobra.Command{Use: "show ID", Short: "Show a batch and its failed jobs",
		Example: "  cmsjobs batches show 9a1c4f0e-…", Args: cobra.ExactArgs(1),
		RunE: a.onBatches(func(ctx context.Context, r *app.Services, v ops.Viewer, args []string) error {
			b, err := r.Batches().Batch(ctx, args[0])
			if err != nil {
				return err
			}
			return a.showBatch(v.Batch(b))
		})}
	c.AddCommand(list, show)
	return c
}

func (a *commandLine) onBatches(do func(context.Context, *app.Services, ops.Viewer, []string) error) func(
	*cobra.Command,
	[]string) error {
	return func(c *cobra.Command, args []string) error {
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			v, err := r.Viewer(false)
			if err != nil {
				return err
			}
			return do(ctx, r, v, args)
		})
	}
}

func (a *commandLine) listBatches(list ops.ListView[ops.BatchView]) error {
	now := a.Now()
	cells := ops.Each(list.Items, func(b ops.BatchView) []string {
		return []string{b.ID, b.Name, b.Status, fmt.Sprint(b.Percent, " %"), count(b.Total), count(b.Pending),
			count(b.Failed), display.Ago(b.CreatedAt, now)}
	})
	if err := a.list(list, []string{"ID", "NAME", "STATUS", "DONE", "JOBS", "PENDING", "FAILED", "DISPATCHED"}, cells,
		"No batches."); err != nil {
		return err
	}
	if list.Next != "" {
		a.printf("More: --cursor %s", list.Next)
	}
	return nil
}

func (a *commandLine) showBatch(b ops.BatchView) error {
	if a.global.json {
		return a.printJSON(b)
	}
	now := a.Now()
	for _, p := range [][]string{{"ID", b.ID}, {"Name", b.Name}, {"Status", b.Status}, {"Done", fmt.Sprintf("%d %%",
		b.Percent)}, {"Jobs", count(b.Total)}, {"Pending", count(b.Pending)}, {"Failed", count(b.Failed)},
		{"Dispatched", display.Ago(b.CreatedAt, now)}, {"Cancelled", display.Ago(b.CancelledAt, now)},
		{"Finished", display.Ago(b.FinishedAt, now)}} {
		if p[1] != "" && p[1] != "–" {
			fmt.Fprintf(a.out, "%-10s %s\n", p[0], display.Printable(p[1]))
		}
	}
	for _, id := range b.FailedJobs {
		fmt.Fprintln(a.out, "Failed job: "+display.Printable(id))
	}
	return nil
}

func (a *commandLine) pauseCommand() *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:     "pause QUEUE…",
		Aliases: []string{"queue:pause"},
		Short:   "Stop all workers from claiming from a queue",
		Long:    "Stops all workers from claiming from the queues; what runs goes on. continue ends the pause.",
		Example: "  cmsjobs pause mail",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeQueues(),
		RunE: func(c *cobra.Command, queues []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				host, err := os.Hostname()
				if err != nil {
					host = "a shell"
				}
				control, err := r.Control()
				if err != nil {
					return err
				}
				return a.ordered(r, control.Pause(ctx, queues, "cli on "+host, force), "Paused.")
			})
		},
	}
	command.Flags().BoolVar(&force, "force", false, "also a queue that has no jobs and no worker yet")
	return command
}

func (a *commandLine) continueCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "continue QUEUE…",
		Aliases: []string{"queue:continue", "resume"},
		Short:   "End the pause of a queue",
		Example: "  cmsjobs continue mail",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeQueues(),
		RunE: func(c *cobra.Command, queues []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				control, err := r.Control()
				if err != nil {
					return err
				}
				for _, q := range queues {
					was, err := control.Continue(ctx, q)
					if err == nil && !was {
						err = fmt.Errorf("the queue %q is not paused: %w", q, jobs.ErrNotFound)
					}
					if err != nil {
						return err
					}
				}
				return a.ordered(r, nil, "Continued.")
			})
		},
	}
}

func (a *commandLine) restartCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restart",
		Aliases: []string{"queue:restart"},
		Short:   "Make all workers finish what they run and exit, to be started again",
		Long: "Makes all workers that run now finish their jobs and exit; their supervisor starts them again. Say " +
			"it after a deployment.",
		Example: "  cmsjobs restart",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				control, err := r.Control()
				if err == nil {
					_, err = control.RestartWorkers(ctx)
				}
				return a.ordered(r, err, "All workers stop when their jobs are done.")
			})
		},
	}
}

func (a *commandLine) workersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "workers",
		Short:   "List workers and what they run",
		Example: "  cmsjobs workers\n  cmsjobs workers scale 4\n  cmsjobs workers stop web1:4711:0a1b2c",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, a.listWorkers)
		},
	}
	c.AddCommand(a.scaleCommand(), &cobra.Command{
		Use:     "stop ID",
		Short:   "Make one worker finish what it runs and exit",
		Example: "  cmsjobs workers stop web1:4711:0a1b2c",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				control, err := r.Control()
				if err == nil {
					err = control.StopWorker(ctx, args[0])
				}
				return a.ordered(r, err, "The worker stops when its jobs are done.")
			})
		},
	})
	return c
}

func (a *commandLine) listWorkers(ctx context.Context, r *app.Services) error {
	workers, err := r.History.Workers(ctx)
	if err != nil {
		return err
	}
	v, err := r.Viewer(false)
	if err != nil {
		return err
	}
	views := ops.ItemsOf(workers, v.Worker)
	now := a.Now()
	var cells [][]string
	for _, w := range views.Items {
		types := ops.Each(w.Running, func(j ops.RunningView) string { return j.Type })
		cells = append(cells, []string{w.ID, w.Status, strings.Join(w.Queues, ","),
			fmt.Sprintf("%d/%d", len(w.Running), w.Slots), strings.Join(types, ", "),
			strconv.FormatInt(w.Done, 10), strconv.FormatInt(w.Failed, 10), bytesOf(w.MemoryBytes),
			display.Ago(w.SeenAt, now)})
		for _, p := range w.PHP {
			cells = append(cells, phpProcess(p, now))
		}
	}
	return a.list(views, []string{"WORKER", "STATUS", "QUEUES", "BUSY", "RUNS", "DONE", "FAILED", "MEMORY", "SEEN"},
		cells, "No worker has signed on. Start one: cmsjobs work")
}

// phpProcess is the line of a PHP process, below its worker's.
func phpProcess(p ops.ProcessView, now time.Time) []string {
	busy, runs := "0/1", ""
	if p.Job != nil {
		busy, runs = "1/1", fmt.Sprintf("%s, for %s", p.Job.Type, display.Span(now.Sub(p.Job.Since)))
	}
	return []string{fmt.Sprint("  PHP process ", p.PID), "", p.Queue, busy, runs, strconv.FormatInt(p.Done, 10), "",
		bytesOf(p.MemoryBytes), ""}
}

// bytesOf is how much memory a process takes, "" where that is not known.
func bytesOf(n int64) string {
	if n <= 0 {
		return ""
	}
	return humanize.IBytes(uint64(n))
}

// ordered tells the workers of this host to read their orders at once.
func (a *commandLine) ordered(r *app.Services, err error, sentence string) error {
	if err != nil {
		return err
	}
	wake.Call(r.WakeDir, wake.Orders, "")
	if a.global.json {
		return a.printJSON(map[string]any{"ok": true, "message": sentence})
	}
	_, err = fmt.Fprintln(a.out, sentence)
	return err
}

func (a *commandLine) cleanCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "clean",
		Aliases: []string{"queue:clean"},
		Short:   "Remove dead workers, release stuck jobs, rotate the history",
		Long: `Removes workers that were silent for too long (queue.heartbeat_stale), releases jobs whose
worker died, rotates the history (queue.keep_completed, queue.keep_failed) and prunes failed
jobs after writing them to a file. You can run it at any time; nothing is locked for long.`,
		Example: "  cmsjobs clean\n  cmsjobs clean --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, a.clean)
		},
	}
	command.Flags().BoolVar(&a.dry, "dry-run", false, "only count what would be removed")
	return command
}

func (a *commandLine) clean(ctx context.Context, r *app.Services) error {
	done, err := r.CleanQueue(ctx, a.dry)
	if err != nil {
		return err
	}
	return a.summary(done, done.Summary())
}
