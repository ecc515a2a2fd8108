package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

func (a *commandLine) jobsExplainCommand() *cobra.Command {
	return &cobra.Command{Use: "explain ID", Short: "Say why a job is not running", Example: "  cmsjobs jobs explain 17", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				record, err := r.History.Job(ctx, args[0])
				if err != nil {
					return err
				}
				s, err := r.Snapshot(ctx, record)
				if err != nil {
					return err
				}
				reasons := explain.Job(s)
				cells := make([][]string, len(reasons))
				for i, reason := range reasons {
					until := ""
					if !reason.Until.IsZero() {
						until = reason.Until.Format(time.RFC3339)
					}
					cells[i] = []string{reason.Text, until}
				}
				return a.list(map[string]any{"uuid": record.UUID, "status": record.Status, "reasons": reasons}, []string{"REASON", "UNTIL"}, cells, "")
			})
		}}
}
