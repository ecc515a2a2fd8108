package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// knowQueues refuses names that no job, worker, type or setting has: most are
// mistyped, and a pause of them would stop nothing.
func (r *services) knowQueues(ctx context.Context, names []string) error {
	stats, err := r.store.Stats(ctx)
	if err != nil {
		return err
	}
	known := append([]string{r.config.Queue.Default}, r.config.Queue.Queues...)
	for _, q := range stats.Queues {
		known = append(known, q.Queue)
	}
	for _, name := range r.registry.Kinds() {
		if entry, there := r.registry.Lookup(name); there && entry.Queue != "" {
			known = append(known, entry.Queue)
		}
	}
	slices.Sort(known)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no job, worker or setting knows a queue %.80q; known are %s. Pause it all the same with --force: %w",
				name, strings.Join(slices.Compact(known), ", "), jobs.ErrNotFound)
		}
	}
	return nil
}
