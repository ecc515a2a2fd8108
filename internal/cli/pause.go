package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) pauseCommand() *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:     "pause QUEUE…",
		Aliases: []string{"queue:pause"},
		Short:   "Stop all workers from claiming from a queue",
		Long:    "Stops all workers from claiming from the queues; what runs goes on. continue ends the pause.",
		Example: "  cmsjobs pause mail",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, queues []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				host, err := os.Hostname()
				if err != nil {
					host = "a shell"
				}
				if !force {
					if err := r.KnowQueues(ctx, queues); err != nil {
						return err
					}
				}
				for _, q := range queues {
					if err := r.History.Pause(ctx, q, "cli on "+host); err != nil {
						return err
					}
				}
				return a.ordered(r, nil, "Paused.")
			})
		},
	}
	command.Flags().BoolVar(&force, "force", false, "also a queue that has no jobs and no worker yet")
	return command
}
