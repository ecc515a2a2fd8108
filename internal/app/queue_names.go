package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// KnowQueues refuses names that no job, worker, type or setting has: most are
// mistyped, and a pause of them would stop nothing.
func (r *Services) KnowQueues(ctx context.Context, names []string) error {
	stats, err := r.History.Stats(ctx)
	if err != nil {
		return err
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
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("no job, worker or setting knows a queue %.80q; known are %s. Pause it all the same with --force: %w",
				name, strings.Join(slices.Compact(known), ", "), jobs.ErrNotFound)
		}
	}
	return nil
}
