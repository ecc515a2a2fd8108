package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

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
	return a.list(done, []string{"CLEANED", "ROWS"}, [][]string{{"dead workers", count(done.Workers)},
		{"stuck jobs released", count(done.Stuck)},
		{"old runs", count(done.Runs)}, {"old ticks of the schedule", count(done.Ticks)},
		{"old orders of internal jobs", count(done.Orders)}, {strings.TrimSpace("old failed jobs " + done.Export),
			count(done.Failed)}}, "")
}
