package app

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// activity records in the audit log what the service does by itself: what
// people and programs ask for over HTTP is in it anyway.
type activity struct {
	r *Services
	c config.Activity
	// audit is where audit entries go.
	audit *access.Store
}

func (r *Services) NewActivity() *activity {
	return &activity{r, r.Config.Activity, access.NewStore(r.OwnDB, r.Now)}
}

// chosen says whether the enqueuing of a type is recorded.
func (a *activity) chosen(jobType string) bool {
	return slices.Contains(a.c.Enqueued, jobType) || rand.Float64() < a.c.Share
}

// enqueued tells of jobs that the service enqueued.
func (a *activity) enqueued(ctx context.Context, list []jobs.Spec, receipts []jobs.Receipt) {
	for i, n := range list {
		if !receipts[i].Existing && a.chosen(n.Type) {
			a.record(ctx, "job_enqueued", receipts[i].UUID, 201, n.Type)
		}
	}
}

// ticked tells of a job that a schedule entry enqueued.
func (a *activity) ticked(entry, jobType string) {
	if a.chosen(jobType) {
		ctx, cancel := context.WithTimeout(context.Background(), activityTime)
		defer cancel()
		a.record(ctx, "job_enqueued", entry, 201, jobType+" by the schedule")
	}
}

// failed tells of a job that failed for good.
func (a *activity) failed(ctx context.Context, end jobs.Settlement) {
	if a.c.Failed {
		reason, _, _ := strings.Cut(end.Error, "\n")
		a.record(ctx, "job_failed", end.Claimed.Job.UUID, 500, end.Claimed.Job.Type+": "+reason)
	}
}

// activityTime is how long the audit log may keep the schedule waiting.
const activityTime = 10 * time.Second

// record writes an audit entry of the service. A audit log that cannot be written fails
// nothing: the job is where it should be, and the log has the audit entry.
func (a *activity) record(ctx context.Context, action, target string, status int, detail string) {
	d := access.AuditEntry{Actor: "cmsjobs", Via: "service", Action: action, Target: target, Status: status, Detail: detail}
	if err := a.audit.Record(ctx, d); err != nil {
		a.r.Log.Warn("audit entry not written", "event", "audit.write_failed",
			"action", action, "target", target, "detail", detail, "error", err)
	}
}
