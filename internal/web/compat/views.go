package compat

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// S1Job is a job in the words of specification S1, and what else is known of it.
type S1Job struct {
	ID          string          `json:"id"`
	Number      int64           `json:"number"`
	Topic       string          `json:"topic"`
	Queue       string          `json:"queue"`
	Payload     json.RawMessage `json:"payload"`
	Metadata    json.RawMessage `json:"metadata"`
	Status      string          `json:"status"`
	Detail      string          `json:"detail,omitempty"`
	Foreign     bool            `json:"foreign"`
	Priority    int             `json:"priority"`
	RunAt       time.Time       `json:"run_at,omitzero"`
	Retries     int             `json:"retries"`     // failed starts so far
	MaxRetries  int             `json:"max_retries"` // starts allowed − 1
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"max_attempts"`
	LastError   string          `json:"last_error,omitempty"`
	Worker      string          `json:"worker,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Progress    *jobs.Progress  `json:"progress,omitempty"`
	Created     time.Time       `json:"created,omitzero"`
	Updated     time.Time       `json:"updated,omitzero"`
	StartedAt   time.Time       `json:"started_at,omitzero"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	DurationMS  int64           `json:"duration_ms"`
}

// S1 is a job in the words of specification S1.
func S1(v ops.JobView) S1Job {
	return S1Job{
		ID: v.ID, Number: v.Number, Topic: v.Type, Queue: v.Queue, Payload: v.Payload, Metadata: v.Metadata,
		Status: S1Status(v.Status), Detail: v.Detail,
		Foreign: v.Foreign, Priority: v.Priority, RunAt: v.RunAt, Retries: retries(v),
		MaxRetries: max(v.MaxAttempts-1, 0), Attempts: v.Attempts, MaxAttempts: v.MaxAttempts,
		LastError: v.Error, Worker: v.Worker, Result: v.Result, Progress: v.Progress, Created: v.EnqueuedAt,
		Updated:   updated(v),
		StartedAt: v.StartedAt, EndedAt: v.EndedAt, DurationMS: v.DurationMS,
	}
}

// retries are the starts that failed: the running one has not.
func retries(v ops.JobView) int {
	switch jobs.Status(v.Status) {
	case jobs.StatusProcessing, jobs.StatusCompleted:
		return max(v.Attempts-1, 0)
	}
	return v.Attempts
}

func updated(v ops.JobView) time.Time {
	newest := v.EnqueuedAt
	for _, t := range []time.Time{v.StartedAt, v.EndedAt} {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// S1Status is a status in the words of S1.
func S1Status(status string) string {
	if status == string(jobs.StatusQueued) {
		return "pending"
	}
	return status
}

// S1Enqueued answers an enqueue in the words of specification S1.
type S1Enqueued struct {
	ID        string          `json:"id"`
	Topic     string          `json:"topic"`
	Status    string          `json:"status"`
	RunAt     time.Time       `json:"run_at,omitzero"`
	Created   time.Time       `json:"created,omitzero"`
	Existing  bool            `json:"existing,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	LastError string          `json:"last_error,omitempty"`
}

// S1Receipt is the answer to an enqueue in the words of specification S1.
func S1Receipt(v ops.Enqueued) S1Enqueued {
	return S1Enqueued{ID: v.ID, Topic: v.Type, Status: S1Status(v.Status), RunAt: v.RunAt, Created: v.EnqueuedAt,
		Existing: v.Existing, Result: v.Result, LastError: v.Error}
}

// S1Stats are the figures of specification S1 and what else is known. Times are in
// milliseconds.
type S1Stats struct {
	Pending          int64           `json:"pending"` // waiting jobs: the delayed ones and PHP's own included
	Delayed          int64           `json:"delayed"`
	Foreign          int64           `json:"foreign"`
	Processing       int64           `json:"processing"`
	Completed        int64           `json:"completed"`
	Failed           int64           `json:"failed"`
	Cancelled        int64           `json:"cancelled"`
	SuccessRate      float64         `json:"success_rate"`
	Ended            int64           `json:"ended"`
	AvgExecutionTime int64           `json:"avg_execution_time"`
	OldestMS         int64           `json:"oldest_ms"`
	Queues           []ops.QueueView `json:"queues"`
}

// S1Figures are the figures of specification S1.
func S1Figures(v ops.StatsView) S1Stats {
	return S1Stats{Pending: v.Waiting, Delayed: v.Delayed, Foreign: v.Foreign, Processing: v.Processing,
		Completed: v.Completed, Failed: v.Failed, Cancelled: v.Cancelled,
		SuccessRate: v.SuccessRate, Ended: v.Ended, AvgExecutionTime: v.AvgDurationMS, OldestMS: v.OldestMS,
		Queues: v.Queues}
}

// S2Job is a job in the words of specification S2.
type S2Job struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload"`
	Status      string          `json:"status"`
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"maxAttempts"`
	RunAt       time.Time       `json:"runAt,omitzero"`
	LockedAt    time.Time       `json:"lockedAt,omitzero"`
	LockedBy    string          `json:"lockedBy,omitempty"`
	LastError   string          `json:"lastError,omitempty"`
	SucceededAt time.Time       `json:"succeededAt,omitzero"`
	FailedAt    time.Time       `json:"failedAt,omitzero"`
	CreatedAt   time.Time       `json:"createdAt,omitzero"`
	UpdatedAt   time.Time       `json:"updatedAt,omitzero"`
}

// S2 is a job in the words of specification S2.
func S2(v ops.JobView) S2Job {
	out := S2Job{ID: v.ID, Type: v.Type, Payload: v.Payload, Status: v.Status, Attempts: v.Attempts,
		MaxAttempts: v.MaxAttempts, RunAt: v.RunAt,
		LastError: v.Error, CreatedAt: v.EnqueuedAt, UpdatedAt: updated(v)}
	switch jobs.Status(v.Status) {
	case jobs.StatusProcessing:
		out.Status, out.LockedAt, out.LockedBy = "running", v.StartedAt, v.Worker
	case jobs.StatusCompleted:
		out.Status, out.SucceededAt = "succeeded", v.EndedAt
	case jobs.StatusFailed:
		out.FailedAt = v.EndedAt
	}
	return out
}
