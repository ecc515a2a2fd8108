package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) workersCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "workers",
		Short:   "List workers and what they run",
		Example: "  cmsjobs workers\n  cmsjobs workers stop web1:4711:0a1b2c",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, a.listWorkers)
		},
	}
	c.AddCommand(&cobra.Command{
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
	cells := ops.Each(views.Items, func(w ops.WorkerView) []string {
		types := ops.Each(w.Running, func(j ops.RunningView) string { return j.Type })
		return []string{w.ID, w.Status, strings.Join(w.Queues, ","), fmt.Sprintf("%d/%d", len(w.Running), w.Slots),
			strings.Join(types, ", "),
			strconv.FormatInt(w.Done, 10), strconv.FormatInt(w.Failed, 10),
			humanize.IBytes(uint64(max(w.MemoryBytes, 0))), display.Ago(w.SeenAt, now)}
	})
	return a.list(views, []string{"WORKER", "STATUS", "QUEUES", "BUSY", "RUNS", "DONE", "FAILED", "MEMORY", "SEEN"},
		cells, "No worker has signed on. Start one: cmsjobs work")
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
