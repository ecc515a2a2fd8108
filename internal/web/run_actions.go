package web

import (
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// RunActions is what a page offers to start, and what it started. Data of pages
// embed it.
type RunActions struct {
	Tracked *ops.JobView // started here: shown until its end
	Types   []string     // of the offered ones, those that can run here
}

// Can says whether a type can be started here.
func (v RunActions) Can(jobType string) bool { return slices.Contains(v.Types, jobType) }

// RunActions finds out which types a page can start, and follows the one that it
// started; live is for [PageView].
func (r *Request) RunActions(jobTypes ...string) (v RunActions, live string) {
	v.Types = slices.DeleteFunc(jobTypes, func(k string) bool { return !r.Known(k) })
	v.Tracked, live = r.tracked()
	return v, live
}

// Cleaners are the types that take something away when a button starts them.
func Cleaners() []string {
	return []string{"cache.clear", "cache.clearExpired", "logs.cleanup", "queue.clean", "maintenance.cleanup"}
}

// tracked is a job that a page shows while it runs: its start, progress and end.
func (r *Request) tracked() (*ops.JobView, string) {
	id := r.QueryParam("job")
	if id == "" || len(id) > 64 {
		return nil, ""
	}
	job, err := r.Ledger().Job(r.Ctx(), id)
	if err != nil {
		return nil, "" // gone: the page is whole without it
	}
	v := r.View().Job(job)
	switch {
	case job.Status == jobs.StatusQueued || job.Status == jobs.StatusProcessing:
		return &v, LiveJob
	case r.Now().Sub(job.EndedAt) < 3*time.Second:
		r.server.answers.Expire() // what the page shows has changed
		return &v, LiveJob        // once more after its end, as its results come to lie
	}
	return &v, ""
}
