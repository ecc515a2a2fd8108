package app

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Snapshot collects what an explanation depends on.
func (r *Services) Snapshot(ctx context.Context, record jobs.Record) (explain.Snapshot, error) {
	return ops.Explainer{Ledger: r.History, Registry: r.Registry, Now: r.Now, Workers: r.History.Workers, Breakers: r.OpenBreakers,
		JobsDisabled: !r.Config.Queue.Enabled}.Snapshot(ctx, record)
}

// Actions change jobs by the rules that the API has, too.
func (r *Services) Actions() ops.Actions {
	return ops.Actions{Change: r.History, Enqueue: httpEnqueuer{r}, Registry: r.Registry}
}

// Viewer shows what an operator sees over HTTP, or everything unmasked.
func (r *Services) Viewer(unmasked bool) (ops.Viewer, error) {
	v := ops.Viewer{To: redact.Operators, Registry: r.Registry}
	if unmasked {
		return v, nil
	}
	var err error
	v.Mask, err = redact.NewRules(r.Config.HTTP.Mask)
	return v, err
}
