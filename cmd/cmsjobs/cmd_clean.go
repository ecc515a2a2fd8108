package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "clean",
		Aliases: []string{"queue:clean"},
		Short:   "Remove dead workers, give stuck jobs back, rotate the history",
		Long: `Removes workers that were silent for too long (queue.heartbeat_stale), gives back jobs whose worker
died, rotates the history (queue.keep_completed, queue.keep_failed) and prunes failed jobs after writing
them to a file. It is safe to say at any time; nothing is locked for long.`,
		Example: "  cmsjobs clean",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withRooms(c, a.clean)
		},
	}
}

func (a *app) clean(ctx context.Context, r *rooms) error {
	q := r.config.Queue
	workers, err := r.store.DeleteStaleWorkers(ctx, q.HeartbeatStale)
	if err != nil {
		return err
	}
	// A claim of ours that just ran out is taken by the next worker anyway.
	stuck, err := r.store.ResetStuck(ctx, q.Lease)
	if err != nil {
		return err
	}
	runs, err := r.store.RotateRuns(ctx, days(q.KeepCompleted), days(q.KeepFailed))
	if err != nil {
		return err
	}
	if err := a.list(map[string]int64{"workers": workers, "stuck": stuck, "runs": runs}, []string{"CLEANED", "ROWS"},
		[][]string{{"dead workers", count(workers)}, {"stuck jobs given back", count(stuck)}, {"old runs", count(runs)}}, ""); err != nil || q.KeepFailed <= 0 || a.global.json {
		return err
	}
	return a.prune(ctx, r, a.now().Add(-q.KeepFailed), "", false)
}

// days rounds up: a part of a day keeps the whole of it.
func days(d time.Duration) int { return int((d + 24*time.Hour - 1) / (24 * time.Hour)) }
