package main

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

// snapshot collects what an explanation depends on.
func (r *services) snapshot(ctx context.Context, record jobs.Record) (explain.Snapshot, error) {
	entry, known := r.registry.Lookup(record.Kind)
	s := explain.Snapshot{Job: record, Now: r.now(), Known: known, Policy: entry.Policy, Ahead: -1, JobsDisabled: !r.config.Queue.Enabled}
	stats, err := r.store.Stats(ctx)
	if err != nil {
		return s, err
	}
	for _, q := range stats.Queues {
		if q.Queue == record.Queue {
			s.Paused = q.Paused
		}
	}
	running, err := r.store.Count(ctx, jobs.Filter{States: []jobs.State{jobs.StateProcessing}, Kinds: []string{record.Kind}})
	if err != nil {
		return s, err
	}
	s.Running = int(running)
	if s.Workers, err = r.store.Workers(ctx); err != nil {
		return s, err
	}
	s.Breakers, err = r.openBreakers(ctx)
	return s, err
}
