package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) typesCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "types",
		Short: "List the job types that can be enqueued",
		Long: `Lists the job types that can be enqueued here, with an example of each payload. --all lists
every type that this program can run: those of parts that are not configured, and those that
only the service itself enqueues. It needs no database. cmsjobs types show lists the fields of one.`,
		Example: "  cmsjobs types\n  cmsjobs types --all --json\n  cmsjobs types show mail.send",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !all {
				return a.withServices(c, func(_ context.Context, r *app.Services) error {
					return a.listTypes(ops.Types(r.Registry, r.Config.Queue.Default, false))
				})
			}
			registry, queue, done, err := a.allTypes()
			if err != nil {
				return err
			}
			defer done()
			return a.listTypes(ops.Types(registry, queue, true))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every type that this program can run")
	c.AddCommand(a.typesShowCommand())
	return c
}

func (a *commandLine) listTypes(views []ops.TypeView) error {
	cells := ops.Each(views, func(v ops.TypeView) []string {
		return []string{v.Name, v.Queue, strconv.Itoa(v.MaxAttempts), milliseconds(v.TimeoutMS).String(),
			string(v.Example)}
	})
	return a.list(ops.Items[ops.TypeView]{Items: views}, []string{"TYPE", "QUEUE", "ATTEMPTS", "TIMEOUT", "PAYLOAD"},
		cells, "No types.")
}
