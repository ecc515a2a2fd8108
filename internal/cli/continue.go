package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func (a *commandLine) continueCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "continue QUEUE…",
		Aliases: []string{"queue:continue", "resume"},
		Short:   "End the pause of a queue",
		Example: "  cmsjobs continue mail",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, queues []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				for _, q := range queues {
					was, err := r.History.Continue(ctx, q)
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
