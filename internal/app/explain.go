package app

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

// Snapshot collects what an explanation depends on.
func (r *Services) Snapshot(ctx context.Context, record jobs.Record) (explain.Snapshot, error) {
	entry, known := r.Registry.Lookup(record.Type)
	s := explain.Snapshot{Job: record, Now: r.Now(), Known: known, Policy: entry.Policy, Ahead: -1, JobsDisabled: !r.Config.Queue.Enabled}
	stats, err := r.History.Stats(ctx)
	if err != nil {
		return s, err
	}
	for _, q := range stats.Queues {
		if q.Queue == record.Queue {
			s.Paused = q.Paused
		}
	}
	running, err := r.History.Count(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}, Types: []string{record.Type}})
	if err != nil {
		return s, err
	}
	s.Running = int(running)
	if s.Workers, err = r.History.Workers(ctx); err != nil {
		return s, err
	}
	s.Breakers, err = r.OpenBreakers(ctx)
	return s, err
}
