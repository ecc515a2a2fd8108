package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func (a *commandLine) scaleCommand() *cobra.Command {
	var worker string
	var reset bool
	command := &cobra.Command{
		Use:   "scale [SLOTS]",
		Short: "Change how many jobs workers run at once, without a restart",
		Long: `Changes how many jobs each worker runs at once, from its next heartbeat on (2 to 6 s). More slots
begin jobs at once. Where there are fewer, running jobs end as usual and no other begins until
as many run as there are slots.

The order holds for all workers, also for those that start later, until another or --reset.
With --worker it holds for one worker, for as long as it lives.`,
		Example: "  cmsjobs workers scale 8\n  cmsjobs workers scale 2 --worker web1:4711:0a1b2c\n" +
			"  cmsjobs workers scale --reset",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			slots, err := slotsOf(args, reset)
			if err != nil {
				return err
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				control, err := r.Control()
				if err != nil {
					return err
				}
				workers, err := control.Scale(ctx, worker, slots)
				return a.ordered(r, err, scaled(workers, slots, worker))
			})
		},
	}
	command.Flags().StringVar(&worker, "worker", "", "only the worker with this id (cmsjobs workers shows it)")
	command.Flags().BoolVar(&reset, "reset", false, "take the order back")
	return command
}

// scaled says what workers do at their next heartbeat.
func scaled(workers int64, slots int, worker string) string {
	switch {
	case slots > 0:
		return display.Sprintf("%d {worker has|workers have} %d {slot|slots} at the next heartbeat.", workers, slots)
	case worker != "":
		return "The worker follows the order for all workers, or its configuration, at the next heartbeat."
	}
	return display.Sprintf("%d {worker has|workers have} the configured number of slots at the next heartbeat.",
		workers)
}

// slotsOf is the number that was written; 0 is that it is reset.
func slotsOf(args []string, reset bool) (int, error) {
	if reset != (len(args) == 0) {
		return 0, app.Usagef("write how many slots, from 1 to %d, or --reset", jobs.MaxSlots)
	}
	if reset {
		return 0, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > jobs.MaxSlots {
		return 0, app.Usagef("a worker has from 1 to %d slots, not %q", jobs.MaxSlots, args[0])
	}
	return n, nil
}
