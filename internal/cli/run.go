package cli

import (
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run worker, scheduler and web in one process",
		Long: `Runs the parts that the configuration enables in one process: the worker (queue.worker), the
scheduler (schedule.enabled) and the web (http.enabled). TERM or INT stops all of them gracefully.

` + exitHelp,
		Example: "  cmsjobs --cms /var/www/site run\n  cmsjobs --cms /var/www/site run -n 4",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := a.openService(c.Context(), changed(c, workFlags)...)
			if err != nil {
				return a.abortedBeforeStart(c.Context(), err)
			}
			defer a.closing(r)
			a.stopBy(r)
			parts, err := r.Parts(a.onAbort)
			if err != nil {
				return err
			}
			if len(parts) == 0 {
				return app.Usagef("nothing to run: queue.worker, schedule.enabled and http.enabled are all off")
			}
			return r.Tracing(c.Context(), func() error { return app.Together(c.Context(), parts) })
		},
	}
	addWorkFlags(c)
	return c
}
