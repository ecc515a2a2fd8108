package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// cleaned is what a cleaning did, or would do.
type cleaned struct {
	Workers int64  `json:"workers"`
	Stuck   int64  `json:"stuck"`
	Runs    int64  `json:"runs"`
	Ticks   int64  `json:"ticks"`
	Orders  int64  `json:"orders"` // of internal jobs
	Failed  int64  `json:"failed"`
	Export  string `json:"export,omitempty"`
	DryRun  bool   `json:"dryRun,omitempty"`
}

// keepOrders is how long orders of internal jobs are kept, at least.
const keepOrders = 90 * 24 * time.Hour

// keepTicks is how long the schedule's history is kept.
const keepTicks = 90 * 24 * time.Hour

// CleanQueue cleans the queue's own tables; with dryRun it only counts.
func (r *Services) CleanQueue(ctx context.Context, dryRun bool) (done cleaned, err error) {
	if dryRun {
		return r.wouldClean(ctx)
	}
	q := r.Config.Queue
	if done.Workers, err = r.History.DeleteStaleWorkers(ctx, q.HeartbeatStale); err != nil {
		return done, err
	}
	// A claim of ours that just ran out is taken by the next worker anyway.
	if done.Stuck, err = r.History.ResetStuck(ctx, q.Lease); err != nil {
		return done, err
	}
	if done.Runs, err = r.History.RotateRuns(ctx, days(q.KeepCompleted), days(q.KeepFailed)); err != nil {
		return done, err
	}
	if done.Ticks, err = r.Store.PruneTicks(ctx, keepTicks); err != nil {
		return done, err
	}
	keep := max(keepOrders, q.KeepFailed, q.KeepCompleted) // a job that can be run again finds its order
	if done.Orders, err = r.Orders.Prune(ctx, r.Now().Add(-keep)); err != nil {
		return done, err
	}
	if err = r.Types.Prune(ctx); err != nil {
		return done, err
	}
	if err = r.Store.PruneCursors(ctx, announce.Kept); err != nil {
		return done, err
	}
	if done.Failed, done.Export, err = r.pruneFailed(ctx, r.Now()); err != nil {
		return done, err
	}
	return done, r.usage().Keep(ctx)
}

// wouldClean counts what cleanQueue would remove.
func (r *Services) wouldClean(ctx context.Context) (cleaned, error) {
	done, q, now := cleaned{DryRun: true}, r.Config.Queue, r.Now()
	workers, err := r.History.Workers(ctx)
	if err != nil {
		return done, err
	}
	for _, w := range workers {
		if now.Sub(w.SeenAt) > q.HeartbeatStale {
			done.Workers++
		}
	}
	for _, x := range []struct {
		into     *int64
		keep     time.Duration
		statuses []jobs.Status
	}{{&done.Runs, q.KeepCompleted, []jobs.Status{jobs.StatusCompleted, jobs.StatusCancelled}},
		{&done.Failed, q.KeepFailed, []jobs.Status{jobs.StatusFailed}}} {
		if x.keep <= 0 {
			continue
		}
		if *x.into, err = r.History.Count(ctx, jobs.Filter{Statuses: x.statuses, Until: now.Add(-x.keep)}); err != nil {
			return done, err
		}
	}
	return done, nil
}

// pruneFailed exports and deletes failed jobs that are older than the
// configuration keeps them. Where there are none no file is made.
func (r *Services) pruneFailed(ctx context.Context, now time.Time) (n int64, file string, err error) {
	keep := r.Config.Queue.KeepFailed
	if keep <= 0 {
		return 0, "", nil
	}
	before := now.Add(-keep)
	old, err := r.History.Count(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}, Until: before})
	if err != nil || old == 0 {
		return 0, "", err
	}
	if file, err = r.ExportFile(now); err != nil {
		return 0, "", err
	}
	n, err = r.PruneTo(ctx, file, before, func(int64) {})
	return n, file, err
}

// days rounds up: a part of a day keeps the whole of it.
func days(d time.Duration) int { return int((d + 24*time.Hour - 1) / (24 * time.Hour)) }

// ExportFile names a new file for pruned jobs.
func (r *Services) ExportFile(now time.Time) (string, error) {
	dir := r.Config.Queue.ExportDir
	if dir == "" && r.Site.Root != "" {
		dir = filepath.Join(r.Site.Storage(), "app", "cmsjobs-export")
	}
	if dir == "" {
		dir = "cmsjobs-export"
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for exports (queue.export_dir): %w", err)
	}
	return filepath.Join(dir, "failed-jobs-"+now.UTC().Format("20060102-150405")+".jsonl"), nil
}

// PruneTo writes each chunk of old rows to a file and syncs it before the
// store deletes them.
func (r *Services) PruneTo(ctx context.Context, path string, before time.Time, report func(int64)) (n int64,
	err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("making the export file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	lines := json.NewEncoder(out)
	written := int64(0)
	return r.History.PruneFailed(ctx, before, func(rows []history.FailedRow) error {
		for _, row := range rows {
			if err := lines.Encode(row); err != nil {
				return err
			}
		}
		written += int64(len(rows))
		report(written)
		return errors.Join(out.Flush(), file.Sync())
	})
}

// Summary implements jobs.Summarizer.
func (c cleaned) Summary() (s phrase.Summary) {
	if c.DryRun {
		return c.wouldSay()
	}
	phrase.Count(&s, c.Runs, "Removed %s old {run|runs}.")
	phrase.Count(&s, c.Ticks, "Removed %s old {tick|ticks}.")
	phrase.Count(&s, c.Orders, "Removed %s old {order|orders} of internal jobs.")
	phrase.Count(&s, c.Workers, "Removed %s dead {worker|workers}.")
	phrase.Count(&s, c.Stuck, "Released %s stuck {job|jobs}.")
	phrase.Count(&s, c.Failed, "Deleted %s old failed {job|jobs}.")
	if c.Export != "" {
		s.Say("The failed jobs were written to %s before.", c.Export)
	}
	if len(s.Sentences) == 0 {
		s.Say("There was nothing to remove.")
	}
	return s
}

// wouldSay is the summary of a dry run.
func (c cleaned) wouldSay() (s phrase.Summary) {
	phrase.Count(&s, c.Runs, "%s old {run|runs} would be removed.")
	phrase.Count(&s, c.Workers, "%s dead {worker|workers} would be removed.")
	phrase.Count(&s, c.Failed, "%s old failed {job|jobs} would be written to a file and deleted.")
	if len(s.Sentences) == 0 {
		s.Say("No old runs, dead workers or old failed jobs would be removed.")
	}
	s.Say("A dry run does not count ticks, orders and stuck jobs.")
	return s
}
