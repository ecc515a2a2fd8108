package backup

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/health"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Monitor is the type backup.monitor: it looks at what lies at the
// destinations and says when people should worry, or sums a week up.
var Monitor = jobs.Kind[MonitorPayload]{
	Name:   "backup.monitor",
	Policy: jobs.Policy{MaxAttempts: 3, Timeout: 15 * time.Minute, Limit: 1},
}

// MonitorPayload is the data of backup.monitor.
type MonitorPayload struct {
	// Digest asks for a summary of the last week instead, good or bad.
	Digest bool `json:"digest,omitempty" default:"false" example:"false"`
}

// monitorJob runs a backup.monitor job.
func (h *Handler) monitorJob(ctx context.Context, _ jobs.Job, p MonitorPayload) error {
	seen, err := h.Health(ctx)
	if err != nil {
		return err
	}
	watched := health.Watched{Health: seen}
	if p.Digest {
		digest, err := h.Digest(ctx)
		if err != nil {
			return err
		}
		watched.Digest = &digest
	}
	for _, w := range seen.Warnings {
		jobs.Logf(ctx, "%s", w.Text)
	}
	if h.c.Watched != nil {
		h.c.Watched(ctx, watched)
	}
	return jobs.SetResult(ctx, watched)
}
