package ops

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Batches reads the batches of PHP jobs.
type Batches interface {
	// Batches lists them, newest first, and goes on from a page's cursor.
	Batches(ctx context.Context, p jobs.Page) (jobs.List[jobs.Batch], error)
	Batch(ctx context.Context, id string) (jobs.Batch, error)
}

// BatchView is a batch of PHP's jobs.
type BatchView struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"` // running, finished, cancelled
	Total  int64  `json:"total"`
	// Pending are the jobs that have not succeeded, failed ones included, as Laravel
	// counts them.
	Pending int64 `json:"pending"`
	Failed  int64 `json:"failed"`
	// Percent are the jobs that are done, failed ones not.
	Percent int `json:"percent"`
	// FailedJobs are the ids of failed jobs, the first 100.
	FailedJobs  []string  `json:"failed_jobs"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	CancelledAt time.Time `json:"cancelled_at,omitzero"`
	FinishedAt  time.Time `json:"finished_at,omitzero"`
}

// Class is the status as the page's styles name those of jobs.
func (b BatchView) Class() string {
	switch b.Status {
	case "running":
		return string(jobs.StatusProcessing)
	case "finished":
		return string(jobs.StatusCompleted)
	}
	return b.Status
}

// Batch shows a batch.
func (v Viewer) Batch(b jobs.Batch) BatchView {
	view := BatchView{ID: b.ID, Name: v.Text(b.Name), Status: "running", Total: b.Total, Pending: b.Pending,
		Failed: b.Failed, FailedJobs: Each(b.FailedJobs, v.Text), CreatedAt: b.CreatedAt, CancelledAt: b.CancelledAt,
		FinishedAt: b.FinishedAt}
	if b.Total > 0 {
		view.Percent = int(100 * min(max(b.Total-b.Pending, 0), b.Total) / b.Total)
	}
	switch {
	case !b.CancelledAt.IsZero():
		view.Status = "cancelled"
	case !b.FinishedAt.IsZero():
		view.Status = "finished"
	}
	return view
}
