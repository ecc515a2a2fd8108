package jobs

import (
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// The lists of the API.
type (
	JobList   = ops.ListView[ops.JobView]
	S1List    = ops.ListView[compat.S1Job]
	S2List    = ops.ListView[compat.S2Job]
	RunList   = ops.ListView[ops.RunView]
	GroupList = ops.Items[ops.FailureGroupView]
)

// filterQuery names the parameters of a filter of jobs, jobQuery those of a list's
// page, too.
func filterQuery() []string {
	return []string{"ids", "status", "type", "queue", "worker", "tag", "text", "cause", "since",
		"until", "q"}
}

func jobQuery() []string { return append(filterQuery(), web.ListQuery()...) }

func (h handlers) apiRoutes() []web.Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	enqueue := web.Route{Method: post, Name: "jobs.enqueue", Summary: "Enqueue a job.", Scope: access.Enqueue,
		Body: EnqueueRequest{}, Answer: ops.Enqueued{}, Status: http.StatusCreated, Handle: h.enqueue}
	list := web.Route{Method: get, Name: "jobs.list", Summary: "List jobs, wherever their rows lie.",
		Scope: access.Read, Managed: true, Query: jobQuery(), Answer: JobList{}, Handle: h.listJobs}
	show := web.Route{Method: get, Name: "jobs.show", Summary: "Show a waiting, running, finished or failed job, by " +
		"UUID or number.", Scope: access.Read, Managed: true, Answer: ops.JobView{}, Handle: h.showJob}
	stats := web.Route{Method: get, Name: "jobs.stats", Summary: "Figures of the queue.", Scope: access.Read,
		Managed: true, Answer: ops.StatsView{}, Handle: h.stats}
	requeue := web.Route{Method: post, Name: "jobs.requeue", Summary: "Run a job again: a failed one is retried, a " +
		"delayed one is due now, an ended one is enqueued again.", Scope: access.Operate, Managed: true,
		Answer: ops.JobView{}, Handle: h.requeueJob}
	cancel := web.Route{Method: post, Name: "jobs.cancel", Summary: "Cancel a waiting job, or ask a running one to " +
		"stop.", Scope: access.Operate, Managed: true, Answer: web.Affected{}, Handle: h.cancelJob}
	remove := web.Route{Method: del, Name: "jobs.delete", Summary: "Delete a waiting or failed job.",
		Scope: access.Operate, Managed: true, Status: http.StatusNoContent, Handle: h.deleteJob}
	at := func(r web.Route, path string, words web.APIDialect) web.Route {
		r.Path, r.Dialect = path, words
		switch words {
		case web.S2Compat:
			r.Answer = s2Answer(r.Answer)
		case web.PocketBaseCompat:
			r.Body, r.Answer = s1Body(r.Body), s1Answer(r.Answer)
		}
		return r
	}
	return []web.Route{
		at(enqueue, "/api/v1/jobs", web.V1), at(list, "/api/v1/jobs", web.V1), at(stats, "/api/v1/jobs/stats", web.V1),
		at(show, "/api/v1/jobs/:id", web.V1),
		at(requeue, "/api/v1/jobs/:id/requeue", web.V1), at(requeue, "/api/v1/jobs/:id/retry", web.V1),
		at(cancel, "/api/v1/jobs/:id/cancel", web.V1), at(remove, "/api/v1/jobs/:id", web.V1),

		at(enqueue, "/api/jobs/enqueue", web.PocketBaseCompat), at(list, "/api/jobs", web.PocketBaseCompat),
		at(stats, "/api/jobs/stats", web.PocketBaseCompat), at(show, "/api/jobs/:id", web.PocketBaseCompat),
		at(requeue, "/api/jobs/:id/requeue", web.PocketBaseCompat), at(remove, "/api/jobs/:id", web.PocketBaseCompat),

		at(list, "/api/admin/jobs", web.S2Compat), at(show, "/api/admin/jobs/:id", web.S2Compat),
		at(requeue, "/api/admin/jobs/:id/retry", web.S2Compat), at(cancel, "/api/admin/jobs/:id/cancel", web.S2Compat),

		{Method: post, Path: "/api/v1/queues/:name/clear", Name: "queues.clear", Summary: "Cancel all waiting jobs " +
			"of a queue. dry_run only counts them.", Scope: access.Operate, Query: []string{"dry_run"},
			Answer: ops.Changed{}, Handle: h.clearQueue},

		{Method: post, Path: "/api/v1/jobs/batch", Name: "jobs.enqueueBatch", Summary: "Enqueue up to 1000 jobs: all " +
			"of them, or none.", Scope: access.Enqueue, Body: EnqueueBatch{}, Answer: EnqueuedBatch{},
			Status: http.StatusCreated, Handle: h.enqueueBatch},
		{Method: post, Path: "/api/v1/jobs/bulk", Name: "jobs.bulk", Summary: "Change all jobs that a filter " +
			"chooses. dry_run only counts them; many are changed by a job that reports its progress.",
			Scope: access.Operate, Body: BulkRequest{}, Answer: ops.Changed{}, Handle: h.bulk},
		{Method: get, Path: "/api/v1/jobs/:id/explain", Name: "jobs.explain", Summary: "Why is this job not running?",
			Scope: access.Read, Managed: true, Answer: ops.Explanation{}, Handle: h.explainJob},
		{Method: get, Path: "/api/v1/explain/:id", Name: "jobs.explain", Summary: "Why is this job not running?",
			Scope: access.Read, Managed: true, Answer: ops.Explanation{}, Handle: h.explainJob},
		{Method: get, Path: "/api/v1/jobs/:id/runs", Name: "jobs.runs", Summary: "The attempts of one job, newest " +
			"first.", Scope: access.Read, Managed: true, Query: web.ListQuery(), Answer: RunList{},
			Needs: web.NeedsHistory, Handle: h.jobRuns},
		{Method: get, Path: "/api/v1/jobs/:id/log", Name: "jobs.log", Summary: "What the job's handler said, oldest " +
			"first.", Scope: access.Read, Managed: true, Answer: ops.LogView{}, Needs: web.NeedsHistory,
			Handle: h.jobLog},
	}
}

// runRoutes are the calls for ended runs, for lists as files and for the types.
func (h handlers) runRoutes() []web.Route {
	const get = http.MethodGet
	return []web.Route{
		{Method: get, Path: "/api/v1/jobs/export", Name: "jobs.export", Summary: "Jobs as CSV, newest first, 100,000 " +
			"at most.", Scope: access.Read, Managed: true, Query: filterQuery(), Type: "text/csv", Stream: true,
			Handle: h.exportJobs},
		{Method: get, Path: "/api/v1/runs/export", Name: "runs.export", Summary: "Runs that ended as CSV, newest " +
			"first, 100,000 at most.", Scope: access.Read, Query: append([]string{"outcome"}, filterQuery()...),
			Type: "text/csv", Stream: true, Needs: web.NeedsHistory, Handle: h.exportRuns},
		{Method: get, Path: "/api/v1/runs", Name: "runs.list", Summary: "Runs that ended, newest first.",
			Scope: access.Read, Query: append([]string{"outcome"}, jobQuery()...), Answer: RunList{},
			Needs: web.NeedsHistory, Handle: h.listRuns},
		{Method: get, Path: "/api/v1/throughput", Name: "runs.throughput", Summary: "Ended runs in steps of time, " +
			"oldest first.", Scope: access.Read, Query: []string{"since", "step"}, Answer: ThroughputView{},
			Needs: web.NeedsHistory, Handle: h.throughput},
		{Method: get, Path: "/api/v1/types", Name: "types.list", Summary: "The types that can be enqueued, with an " +
			"example of each payload.", Scope: access.Read, Answer: TypeList{}, Handle: h.jobTypes},
	}
}

// s1Body and s1Answer are the shapes of S1 for those of /api/v1, s2Answer those
// of S2.
func s1Body(body any) any {
	if _, is := body.(EnqueueRequest); is {
		return compat.EnqueueRequest{}
	}
	return body
}

func s1Answer(answer any) any {
	switch answer.(type) {
	case ops.JobView:
		return compat.S1Job{}
	case JobList:
		return S1List{}
	case ops.StatsView:
		return compat.S1Stats{}
	case ops.Enqueued:
		return compat.S1Enqueued{}
	}
	return answer
}

func s2Answer(answer any) any {
	switch answer.(type) {
	case ops.JobView:
		return compat.S2Job{}
	case JobList:
		return S2List{}
	}
	return answer
}

func (h handlers) failedRoutes() []web.Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []web.Route{
		{Method: get, Path: "/api/v1/failed", Name: "failed.list", Summary: "Failed jobs, newest first.",
			Scope: access.Read, Query: jobQuery(), Answer: JobList{}, Handle: h.listFailed},
		{Method: get, Path: "/api/v1/failed/groups", Name: "failed.groups",
			Summary: "Failed jobs by cause, most first.", Scope: access.Read, Query: []string{
				"type", "queue", "since", "until"}, Answer: GroupList{}, Needs: web.NeedsHistory,
			Handle: h.failureGroups},
		{Method: post, Path: "/api/v1/failed/:id/retry", Name: "failed.retry", Summary: "Put a failed job back into " +
			"its queue.", Scope: access.Operate, Answer: ops.JobView{}, Handle: h.retryFailed},
		{Method: del, Path: "/api/v1/failed/:id", Name: "failed.delete", Summary: "Delete a failed job.",
			Scope: access.Operate, Status: http.StatusNoContent, Handle: h.deleteFailed},
		{Method: post, Path: "/api/v1/failed/retry", Name: "failed.retryAll", Summary: "Retry failed jobs by ids or " +
			"by a filter.", Scope: access.Operate, Body: BulkSelection{}, Answer: ops.Changed{}, Handle: h.retryMany},
		{Method: post, Path: "/api/v1/failed/delete", Name: "failed.deleteAll", Summary: "Delete failed jobs by ids " +
			"or by a filter.", Scope: access.Operate, Body: BulkSelection{}, Answer: ops.Changed{},
			Handle: h.deleteMany},
	}
}
