package app

import (
	"context"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// QueueNames lists the queues that a job, worker, type or setting has, sorted.
func (r *Services) QueueNames(ctx context.Context) ([]string, error) {
	stats, err := r.History.Stats(ctx)
	if err != nil {
		return nil, err
	}
	known := append([]string{r.Config.Queue.Default}, r.Config.Queue.Queues...)
	for _, q := range stats.Queues {
		known = append(known, q.Queue)
	}
	for _, name := range r.Registry.Types() {
		if entry, there := r.Registry.Lookup(name); there && entry.Queue != "" {
			known = append(known, entry.Queue)
		}
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

// Control pauses queues, stops workers and changes the schedule.
func (r *Services) Control() (ops.Control, error) {
	s, err := r.Scheduler()
	return ops.Control{Queues: r.History, Workers: r.History, Schedules: s, Known: r.QueueNames}, err
}
