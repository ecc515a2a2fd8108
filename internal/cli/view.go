package cli

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// jobView is a job as --json prints it.
type jobView struct {
	ID          int64           `json:"id"`
	UUID        string          `json:"uuid"`
	Type        string          `json:"type"`
	Queue       string          `json:"queue"`
	Status      jobs.Status     `json:"status"`
	Detail      string          `json:"detail,omitempty"`
	Foreign     bool            `json:"foreign,omitempty"`
	Priority    int             `json:"priority,omitempty"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Worker      string          `json:"worker,omitempty"`
	Error       string          `json:"error,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Progress    *jobs.Progress  `json:"progress,omitempty"`
	EnqueuedAt  *time.Time      `json:"enqueued_at,omitempty"`
	RunAt       *time.Time      `json:"run_at,omitempty"`
	StartedAt   *time.Time      `json:"started_at,omitempty"`
	EndedAt     *time.Time      `json:"ended_at,omitempty"`
	DurationMS  int64           `json:"duration_ms,omitempty"`
}

func viewOf(r jobs.Record, whole bool) jobView {
	v := jobView{ID: r.ID, UUID: r.UUID, Type: r.Type, Queue: r.Queue, Status: r.Status, Detail: r.Detail, Foreign: r.Foreign,
		Priority: r.Priority, Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, Worker: r.Worker, Error: r.Error, Progress: r.Progress,
		EnqueuedAt: moment(r.EnqueuedAt), RunAt: moment(r.RunAt), StartedAt: moment(r.StartedAt), EndedAt: moment(r.EndedAt),
		DurationMS: r.Duration.Milliseconds(), Result: r.Result}
	if whole {
		v.Payload = asJSON(r.Payload)
	}
	return v
}

// moment leaves out times that never came.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// asJSON puts a payload into JSON whatever it is.
func asJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return nil
	}
	return text
}
