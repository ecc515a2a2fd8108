package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
	pruned, file, err := r.pruneFailed(ctx, a.now())
	if err != nil {
		return err
	}
	answer := map[string]any{"workers": workers, "stuck": stuck, "runs": runs, "failed": pruned, "export": file}
	return a.list(answer, []string{"CLEANED", "ROWS"}, [][]string{{"dead workers", count(workers)}, {"stuck jobs given back", count(stuck)},
		{"old runs", count(runs)}, {strings.TrimSpace("old failed jobs " + file), count(pruned)}}, "")
}

// pruneFailed exports and deletes failed jobs that are older than the
// configuration keeps them. Where there are none no file is made.
func (r *rooms) pruneFailed(ctx context.Context, now time.Time) (n int64, file string, err error) {
	keep := r.config.Queue.KeepFailed
	if keep <= 0 {
		return 0, "", nil
	}
	before := now.Add(-keep)
	old, err := r.store.Count(ctx, jobs.Filter{States: []jobs.State{jobs.StateFailed}, Until: before})
	if err != nil || old == 0 {
		return 0, "", err
	}
	if file, err = r.exportFile(now); err != nil {
		return 0, "", err
	}
	n, err = r.pruneTo(ctx, file, before, func(int64) {})
	return n, file, err
}

// days rounds up: a part of a day keeps the whole of it.
func days(d time.Duration) int { return int((d + 24*time.Hour - 1) / (24 * time.Hour)) }
