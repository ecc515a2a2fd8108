package jobs

import (
	"context"
	"embed"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p, &ops.QueueLimit{Known: p.Queues}}
	return web.Feature{Name: "jobs", Path: "/admin/jobs", Also: []web.MenuEntry{
		{Name: "failed", Path: "/admin/failed"}}, Group: web.Queue, Files: files,
		Chapters: map[string]string{
			"jobs": "admin#jobs", "runs": "admin#runs", "job": "admin#one-job",
			"failed": "admin#failed-jobs", "enqueue": "jobs", "edit": "admin#one-job"},
		Counts: counts, Actions: actions,
		Routes: slices.Concat(h.apiRoutes(), h.runRoutes(), h.failedRoutes(), h.pageRoutes())}
}

// counts are the waiting and the failed jobs.
func counts(ctx context.Context, c web.Config, cache *answers.Cache) ([]web.Count, error) {
	stats, err := web.Stats(ctx, c, cache)
	return []web.Count{
		{Path: "/admin/jobs", N: ops.Stats(stats).Waiting, Key: "nav.count.waiting", Live: "waiting"},
		{Path: "/admin/failed", N: ops.Stats(stats).Failed, Key: "nav.count.failed", Level: "bad", Live: "failed"}}, err
}

func actions(req *web.Request) []web.Action {
	return []web.Action{{Text: req.Text("enqueue.title"), Icon: "plus", Path: "/admin/enqueue", Link: true,
		Scope: access.Enqueue}}
}

// pageRoutes are the pages and their forms. Forms answer 303 and the page shows
// what came of it; what is dangerous asks first.
func (h handlers) pageRoutes() []web.Route {
	const read, operate, enqueue = access.Read, access.Operate, access.Enqueue
	export := web.PageRoute("/admin/failed/export", "failed.export", "Failed jobs as JSON lines.", read, h.exportFailed)
	jobsFile := web.PageRoute("/admin/jobs/export", "jobs.export", "Jobs as CSV.", read, h.exportJobs)
	runsFile := web.PageRoute("/admin/runs/export", "runs.export", "Runs as CSV.", read, h.exportRuns).Requires(
		web.NeedsHistory)
	export.Stream, jobsFile.Stream, runsFile.Stream = true, true, true
	columns := web.FormRoute("/admin/jobs/columns", "pages.columns", "Choose columns.", read, h.chooseColumns)
	save := web.FormRoute("/admin/filters", "filters.save", "Save a filter of one's own.", read, h.saveFilter)
	forget := web.FormRoute("/admin/filters/delete", "filters.delete", "Delete a saved filter of one's own.", read,
		h.deleteFilter)
	columns.Quiet, columns.Managed, save.Managed, forget.Managed = true, true, true, true
	return []web.Route{
		export, jobsFile, runsFile, columns, save, forget,
		web.PageRoute("/admin/runs", "pages.runs", "Runs.", read, h.runsPage).Requires(web.NeedsHistory),
		web.PageRoute("/admin/jobs", "pages.jobs", "Jobs.", read, h.jobsPage),
		web.FormRoute("/admin/jobs/bulk", "jobs.bulk", "Change all jobs that a filter chooses.", operate, h.bulkPage),
		web.PageRoute("/admin/jobs/:id", "pages.job", "One job.", read, h.jobPage),
		web.FormRoute("/admin/jobs/:id/again", "jobs.requeue", "Run a job again.", operate, h.againByForm),
		web.FormRoute("/admin/jobs/:id/cancel", "jobs.cancel", "Cancel a job.", operate, h.cancelByForm),
		web.FormRoute("/admin/jobs/:id/restore", "jobs.restore", "Put a job back that was cancelled while it waited.",
			operate, h.restoreByForm),
		web.FormRoute("/admin/jobs/:id/delete", "jobs.delete", "Delete a failed job.", operate, h.deleteByForm),
		web.PageRoute("/admin/jobs/:id/edit", "pages.edit", "Run a job again with another payload.", operate,
			h.editPage),
		web.FormRoute("/admin/jobs/:id/edit", "jobs.enqueue", "Run a job again with another payload.", operate,
			h.runEdited),
		web.PageRoute("/admin/enqueue", "pages.enqueue", "Enqueue a job.", enqueue, h.enqueuePage),
		web.FormRoute("/admin/enqueue", "jobs.enqueue", "Enqueue a job.", enqueue, h.enqueueByForm),
		web.PageRoute("/admin/failed", "pages.failed", "Failed jobs by cause.", read, h.failedPage),
		web.FormRoute("/admin/failed/canary", "failed.retry", "Retry one job of a cause.", operate, h.canary),
		web.FormRoute("/admin/start", "jobs.enqueue", "Start a type from its page.", enqueue, h.start),
	}
}
