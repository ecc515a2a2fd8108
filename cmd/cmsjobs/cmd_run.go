package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run everything in one process: worker, scheduler, web",
		Long: `Runs the parts that the configuration enables in one process: the worker (queue.worker), the
scheduler (schedule.enabled) and the web (http.enabled). TERM or INT stops all of them gracefully.

` + exitHelp,
		Example: "  cmsjobs --cms /var/www/site run\n  cmsjobs --cms /var/www/site run -n 4",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := a.openLoaded(c.Context(), changed(c, workFlags)...)
			if err != nil {
				return err
			}
			defer a.closing(r)
			parts := a.parts(r)
			if len(parts) == 0 {
				return usagef("nothing to run: queue.worker, schedule.enabled and http.enabled are all off")
			}
			return together(c.Context(), parts)
		},
	}
	addWorkFlags(c)
	return c
}

// part is one of the things that run does, until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// parts lists what the configuration enables.
func (a *app) parts(r *rooms) []part {
	var parts []part
	if r.config.Queue.Worker && r.config.Queue.Enabled {
		parts = append(parts, part{"worker", func(ctx context.Context) error { return a.work(ctx, r, workerOptions{}) }})
	}
	return parts
}

// errEnded says that a part ended by itself and in order; the others follow.
var errEnded = errors.New("ended")

// together runs all parts; when one ends, whatever the reason, all end: a
// supervisor then starts the whole anew instead of half a service living on.
func together(ctx context.Context, parts []part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		group.Go(func() error {
			if err := p.run(ctx); err != nil {
				return err
			}
			return errEnded
		})
	}
	if err := group.Wait(); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}
