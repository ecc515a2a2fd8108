package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

// Explainer collects what an explanation of a job depends on.
type Explainer struct {
	Ledger   Ledger
	Registry *jobs.Registry
	Now      func() time.Time
	// Workers and Breakers may be nil where nothing knows them.
	Workers  func(context.Context) ([]jobs.WorkerRecord, error)
	Breakers func(context.Context) ([]explain.Breaker, error)
	// JobsDisabled is JOBS_ENABLED=false.
	JobsDisabled bool
	// PHPQueues are the queues whose jobs of PHP are run here.
	PHPQueues []string
}

// Snapshot is all that the explanation of a job depends on now.
func (e Explainer) Snapshot(ctx context.Context, r jobs.Record) (explain.Snapshot, error) {
	entry, known := e.Registry.Known(r.Type)
	snap := explain.Snapshot{Job: r, Now: e.Now(), Known: known, Policy: entry.Policy, Ahead: -1,
		JobsDisabled: e.JobsDisabled, RunsPHP: slices.Contains(e.PHPQueues, r.Queue)}
	snap.Elsewhere = known && entry.Run == nil
	if r.Status != jobs.StatusQueued {
		return snap, nil
	}
	stats, err := e.Ledger.Stats(ctx)
	if err != nil {
		return snap, fmt.Errorf("counting jobs: %w", err)
	}
	for _, q := range stats.Queues {
		if q.Queue == r.Queue {
			snap.Paused = q.Paused
		}
	}
	if entry.Policy.Limit > 0 {
		running, err := e.Ledger.Count(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing},
			Types: []string{r.Type}})
		if err != nil {
			return snap, fmt.Errorf("counting running jobs: %w", err)
		}
		snap.Running = int(running)
	}
	if e.Workers != nil {
		if snap.Workers, err = e.Workers(ctx); err != nil {
			return snap, fmt.Errorf("listing workers: %w", err)
		}
	}
	if e.Breakers != nil {
		if snap.Breakers, err = e.Breakers(ctx); err != nil {
			return snap, fmt.Errorf("listing breakers: %w", err)
		}
	}
	return snap, nil
}
