package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
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
				known, err := r.History.Stop(ctx, args[0])
				if err == nil && !known {
					err = fmt.Errorf("no worker is named %q: %w", args[0], jobs.ErrNotFound)
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
	type view struct {
		ID        string            `json:"id"`
		Status    string            `json:"status"`
		Alive     bool              `json:"alive"`
		Queues    []string          `json:"queues"`
		Slots     int               `json:"slots"`
		Running   []jobs.RunningJob `json:"running"`
		Done      int64             `json:"done"`
		Failed    int64             `json:"failed"`
		Memory    int64             `json:"memory_bytes"`
		Version   string            `json:"version"`
		StartedAt time.Time         `json:"started_at"`
		SeenAt    time.Time         `json:"seen_at"`
	}
	views := make([]view, len(workers))
	cells := make([][]string, len(workers))
	now := a.Now()
	for i, w := range workers {
		views[i] = view{w.ID, w.Status, w.Alive, w.Queues, w.Slots, w.Running, w.Done, w.Failed, w.MemoryBytes, w.Version, w.StartedAt, w.SeenAt}
		state := w.Status
		if !w.Alive {
			state = "silent"
		}
		var kinds []string
		for _, j := range w.Running {
			kinds = append(kinds, j.Type)
		}
		cells[i] = []string{w.ID, state, strings.Join(w.Queues, ","), fmt.Sprintf("%d/%d", len(w.Running), w.Slots), strings.Join(kinds, ", "),
			strconv.FormatInt(w.Done, 10), strconv.FormatInt(w.Failed, 10), humanize.IBytes(uint64(max(w.MemoryBytes, 0))), display.Ago(w.SeenAt, now)}
	}
	return a.list(views, []string{"WORKER", "STATUS", "QUEUES", "BUSY", "RUNS", "DONE", "FAILED", "MEMORY", "SEEN"}, cells, "No worker has signed on. Start one: cmsjobs work")
}

// ordered tells the workers of this host to read their orders at once.
func (a *commandLine) ordered(r *app.Services, err error, sentence string) error {
	if err != nil {
		return err
	}
	wake.Call(r.WakeDir, wake.Orders)
	if a.global.json {
		return a.printJSON(map[string]any{"ok": true, "message": sentence})
	}
	_, err = fmt.Fprintln(a.out, sentence)
	return err
}
