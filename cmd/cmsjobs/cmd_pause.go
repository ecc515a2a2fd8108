package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
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
			return a.withServices(c, func(ctx context.Context, r *services) error {
				host, err := os.Hostname()
				if err != nil {
					host = "a shell"
				}
				if !force {
					if err := r.knowQueues(ctx, queues); err != nil {
						return err
					}
				}
				for _, q := range queues {
					if err := r.store.Pause(ctx, q, "cli on "+host); err != nil {
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
