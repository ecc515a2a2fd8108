package cache

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register makes the types known, with the name that the specification has for
// queue.clean beside it.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Clear, h.clear)
	jobs.Handle(r, ClearExpired, h.clearExpired)
	jobs.Handle(r, LogsCleanup, h.cleanLogs)
	jobs.Restrict(r, LogsCleanup, jobs.Restriction[LogsPayload]{Reserved: h.reserved})
	if h.cleanQueue != nil {
		jobs.Handle(r, QueueClean, h.cleanTheQueue)
		r.Alias("queue:clean", QueueClean.Name)
	}
	jobs.Handle(r, Maintenance, h.maintain)
	jobs.Results[Report](r, Clear)
	jobs.Results[Report](r, ClearExpired)
	jobs.Results[Report](r, LogsCleanup)
	jobs.Results[Maintained](r, Maintenance)
}

func (h *Handler) cleanTheQueue(ctx context.Context, _ jobs.Job, p CleanPayload) error {
	done, err := h.cleanQueue(ctx, p.DryRun)
	if err != nil {
		return fmt.Errorf("cleaning the queue's tables: %w", err)
	}
	return jobs.SetResult(ctx, done)
}

// maintain asks for all the cleaning jobs, in the transaction that completes
// it: each then has its own attempts, result and place in the history.
func (h *Handler) maintain(ctx context.Context, _ jobs.Job, p CleanPayload) error {
	next := []jobs.Spec{ClearExpired.New(ExpiredPayload(p)), LogsCleanup.New(LogsPayload{DryRun: p.DryRun})}
	if h.cleanQueue != nil {
		next = append(next, QueueClean.New(p))
	}
	kinds := make([]string, len(next))
	for i, n := range next {
		kinds[i] = n.Type
	}
	jobs.FollowUp(ctx, next...)
	return jobs.SetResult(ctx, Maintained{kinds, p.DryRun})
}
