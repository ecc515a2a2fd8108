package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func (a *app) pauseCommand() *cobra.Command {
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

// knowQueues refuses names that no job, worker, type or setting has: most are
// mistyped, and a pause of them would stop nothing.
func (r *services) knowQueues(ctx context.Context, names []string) error {
	stats, err := r.store.Stats(ctx)
	if err != nil {
		return err
	}
	known := append([]string{r.config.Queue.Default}, r.config.Queue.Queues...)
	for _, q := range stats.Queues {
		known = append(known, q.Queue)
	}
	for _, name := range r.registry.Kinds() {
		if entry, there := r.registry.Lookup(name); there && entry.Queue != "" {
			known = append(known, entry.Queue)
		}
	}
	slices.Sort(known)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no job, worker or setting knows a queue %.80q; known are %s. Pause it all the same with --force: %w",
				name, strings.Join(slices.Compact(known), ", "), jobs.ErrNotFound)
		}
	}
	return nil
}
