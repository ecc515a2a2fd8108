package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) restartCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restart",
		Aliases: []string{"queue:restart"},
		Short:   "Make all workers finish what they run and exit, to be started again",
		Long:    "Makes all workers that run now finish their jobs and exit; their supervisor starts them again. Run it after a deployment.",
		Example: "  cmsjobs restart",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return a.ordered(r, r.Store.Restart(ctx), "All workers stop when their jobs are done.")
			})
		},
	}
}
