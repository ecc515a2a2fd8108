package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func (a *commandLine) jobsStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Count jobs by status and queue",
		Example: "  cmsjobs jobs stats\n  cmsjobs jobs stats --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				s, err := r.History.Stats(ctx)
				if err != nil {
					return err
				}
				return a.printStats(s)
			})
		},
	}
}

type queueView struct {
	Queue      string  `json:"queue"`
	Queued     int64   `json:"queued"`
	Delayed    int64   `json:"delayed"`
	Processing int64   `json:"processing"`
	Foreign    int64   `json:"foreign"`
	OldestS    float64 `json:"oldest_seconds"`
	Paused     bool    `json:"paused"`
	Workers    int     `json:"workers"`
}

func (a *commandLine) printStats(s jobs.Stats) error {
	queues := make([]queueView, len(s.Queues))
	var cells [][]string
	for i, q := range s.Queues {
		queues[i] = queueView{q.Queue, q.Queued, q.Delayed, q.Processing, q.Foreign, q.Oldest.Seconds(), q.Paused, q.Workers}
		name := q.Queue
		if q.Paused {
			name += " (paused)"
		}
		cells = append(cells, []string{name, count(q.Queued), count(q.Delayed), count(q.Processing), count(q.Foreign), display.Span(q.Oldest), strconv.Itoa(q.Workers)})
	}
	if a.global.json {
		return a.printJSON(map[string]any{"queued": s.Queued, "delayed": s.Delayed, "foreign": s.Foreign, "processing": s.Processing, "completed": s.Completed,
			"failed": s.Failed, "cancelled": s.Cancelled, "success_rate": s.SuccessRate, "average_duration_ms": s.AverageDuration.Milliseconds(),
			"oldest_seconds": s.Oldest.Seconds(), "queues": queues})
	}
	_, err := fmt.Fprintf(a.out, "queued %d · delayed %d · PHP's own %d · processing %d · completed %d · failed %d · cancelled %d · %.1f %% succeeded · %s on average\n\n",
		s.Queued, s.Delayed, s.Foreign, s.Processing, s.Completed, s.Failed, s.Cancelled, 100*s.SuccessRate, s.AverageDuration.Round(time.Millisecond))
	if err != nil || len(cells) == 0 {
		return err
	}
	return a.table([]string{"QUEUE", "QUEUED", "DELAYED", "PROCESSING", "PHP'S OWN", "OLDEST", "WORKERS"}, cells)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
