package analytics

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Register adds the kinds to a registry.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, Process, func(ctx context.Context, _ jobs.Job, p ProcessPayload) error {
		result, err := h.Process(ctx, p)
		if err != nil {
			return err
		}
		return jobs.SetResult(ctx, result)
	})
	jobs.Results[Processed](r, Process)
	if h.WeeklyMail != nil {
		jobs.Handle(r, Weekly, func(ctx context.Context, _ jobs.Job, p WeeklyPayload) error { return h.weekly(ctx, p) })
		jobs.Results[weekResult](r, Weekly)
	}
}
