package ops

import (
	"context"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// step is how many jobs one step changes: each is one short transaction, so
// that any number of them needs the same memory.
const step = 500

// Changed says what a change of many jobs did, or would do.
type Changed struct {
	Count   int64 `json:"count"` // jobs that the selection chose when it was counted
	Changed int64 `json:"changed"`
	// LeftOut is how many more it chose that the caller may not make run. A dry run
	// does not read their payloads: it counts those of types only.
	LeftOut int64 `json:"left_out,omitempty"`
	DryRun  bool  `json:"dry_run"`
	// Job is the id of the job that does the work, where there is much of it.
	Job string `json:"job,omitempty"`
}

// Selected narrows a filter to the jobs that an action takes: those of its
// statuses that fit. Without a status in the filter these are failed or waiting
// jobs; running ones are cancelled only where the filter names their status.
// none says that no job can fit.
func Selected(action Action, f jobs.Filter) (selected jobs.Filter, none bool) {
	fits := action.Statuses()
	if len(f.Statuses) == 0 {
		f.Statuses = fits[:1]
		return f, false
	}
	f.Statuses = slices.DeleteFunc(slices.Clone(f.Statuses), func(s jobs.Status) bool {
		return !slices.Contains(fits, s)
	})
	return f, len(f.Statuses) == 0
}

// Many does an action with what the filter chooses, step by step, until limit
// jobs are changed; report hears how many are. Jobs that come while it works
// (retried ones that fail again) are not meant: the store takes the oldest
// first, and limit is how many there were.
func (a Actions) Many(ctx context.Context, action Action, f jobs.Filter, limit int64, report func(done int64)) (int64,
	error) {
	f, none := Selected(action, f)
	if none {
		return 0, nil
	}
	var total int64
	for _, status := range f.Statuses {
		one := f
		one.Statuses = []jobs.Status{status}
		for total < limit && ctx.Err() == nil {
			most := min(limit-total, step)
			if status == jobs.StatusProcessing { // they stay until their workers heard it: one step for all
				most = limit - total
			}
			n, err := a.do(action)(ctx, one, int(most))
			total += n
			if err != nil {
				return total, fmt.Errorf("%s after %d jobs: %w", action, total, err)
			}
			if n > 0 {
				report(total)
			}
			if n == 0 || status == jobs.StatusProcessing { // others were quicker
				break
			}
		}
	}
	return total, ctx.Err()
}
