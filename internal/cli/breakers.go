package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/display"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) breakersCommand() *cobra.Command {
	c := &cobra.Command{Use: "breakers", Short: "Show and reset circuit breakers",
		Long:    "After repeated failures of a mail server, bucket or host its circuit opens: jobs that need it wait without losing attempts.",
		Example: "  cmsjobs breakers list\n  cmsjobs breakers reset smtp:mail.example.com:587"}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List all circuit breakers, open ones first", Example: "  cmsjobs breakers list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				list, err := r.Breakers.List(ctx)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list))
				for i, b := range list {
					cells[i] = []string{b.Dependency, string(b.State), strconv.Itoa(b.Failures), display.Ago(b.RetryAt, a.Now()), display.Short(b.LastError, 80)}
				}
				return a.list(list, []string{"DEPENDENCY", "STATE", "FAILURES", "NEXT TRY", "ERROR"}, cells, "Nothing has failed.")
			})
		}},
		&cobra.Command{Use: "reset DEPENDENCY", Short: "Close a circuit at once", Example: "  cmsjobs breakers reset smtp:mail.example.com:587", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				return a.withServices(c, func(ctx context.Context, r *app.Services) error {
					was, err := r.Breakers.Reset(ctx, args[0])
					if err == nil && !was {
						err = fmt.Errorf("%q never failed; see cmsjobs breakers list: %w", args[0], jobs.ErrNotFound)
					}
					if err != nil {
						return err
					}
					return a.list(map[string]string{"reset": args[0]}, []string{"RESET"}, [][]string{{args[0]}}, "")
				})
			}})
	return c
}
