package activity

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Log records in the audit log what the service does by itself: what
// people and programs ask for over HTTP is in it anyway.
type Log struct {
	log *slog.Logger
	c   config.Activity
	// audit is where audit entries go.
	audit *access.Store
}

// New makes a Log.
func New(log *slog.Logger, c config.Activity, audit *access.Store) *Log { return &Log{log, c, audit} }

// chosen says whether the enqueuing of a type is recorded.
func (a *Log) chosen(jobType string) bool {
	return slices.Contains(a.c.Enqueued, jobType) || rand.Float64() < a.c.Share
}

// Enqueued tells of jobs that the service enqueued.
func (a *Log) Enqueued(ctx context.Context, list []jobs.Spec, receipts []jobs.Receipt) {
	for i, n := range list {
		if !receipts[i].Existing && a.chosen(n.Type) {
			a.record(ctx, "job_enqueued", receipts[i].UUID, 201, n.Type)
		}
	}
}

// Ticked tells of a job that a schedule entry enqueued.
func (a *Log) Ticked(entry, jobType string) {
	if a.chosen(jobType) {
		ctx, cancel := context.WithTimeout(context.Background(), activityTime)
		defer cancel()
		a.record(ctx, "job_enqueued", entry, 201, jobType+" by the schedule")
	}
}

// Failed tells of a job that failed for good.
func (a *Log) Failed(ctx context.Context, end jobs.Settlement) {
	if a.c.Failed {
		reason, _, _ := strings.Cut(end.Error, "\n")
		a.record(ctx, "job_failed", end.Claimed.Job.UUID, 500, end.Claimed.Job.Type+": "+reason)
	}
}

// activityTime is how long the audit log may keep the schedule waiting.
const activityTime = 10 * time.Second

// record writes an audit entry of the service. An audit log that cannot be written fails
// nothing: the job is where it should be, and the log has the audit entry.
func (a *Log) record(ctx context.Context, action, target string, status int, detail string) {
	d := access.AuditEntry{Actor: "cmsjobs", Via: "service", Action: action, Target: target, Status: status,
		Detail: detail}
	if err := a.audit.Record(ctx, d); err != nil {
		a.log.Warn("audit entry not written", "event", "audit.write_failed",
			"action", action, "target", target, "detail", detail, "error", err)
	}
}
