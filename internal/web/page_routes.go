package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// pageRoutes are the admin pages and the forms on them. Forms answer 303 and
// the page shows what came of it; what is dangerous asks first.
func pageRoutes() []Route {
	page := func(path, name, summary string, scope access.Scope, handle func(*Server, echo.Context) error) Route {
		return Route{Method: http.MethodGet, Path: path, Name: name, Summary: summary, Scope: scope, Managed: scope == access.Read, Page: true, Type: "text/html", handle: withDeadlineBudget(handle)}
	}
	form := func(path, name, summary string, scope access.Scope, handle func(*Server, echo.Context) error) Route {
		return Route{Method: http.MethodPost, Path: path, Name: name, Summary: summary, Scope: scope, Managed: scope == access.Operate, Page: true, Type: "text/html", handle: handle}
	}
	const read, operate, enqueue = access.Read, access.Operate, access.Enqueue
	look := form("/admin/look", "pages.look", "Choose theme and language.", "", (*Server).preferences)
	look.Quiet = true
	export := page("/admin/failed/export", "failed.export", "Failed jobs as JSON lines.", read, (*Server).exportFailed)
	export.Stream = true
	all := []Route{
		look, export,
		page("/admin/sign-in", "pages.signIn", "The sign-in form.", "", (*Server).signInPage),
		form("/admin/sign-in", "session.create", "Sign in.", "", (*Server).signInByForm),
		form("/admin/sign-out", "session.delete", "Sign out.", "", (*Server).signOutByForm),
		page("/admin", "pages.overview", "Is anything working?", read, (*Server).overviewPage),
		page("/admin/jobs", "pages.jobs", "Jobs.", read, (*Server).jobsPage),
		form("/admin/jobs/bulk", "jobs.bulk", "Change all jobs that a filter chooses.", operate, (*Server).bulkPage),
		page("/admin/jobs/:id", "pages.job", "One job.", read, (*Server).jobPage),
		form("/admin/jobs/:id/again", "jobs.requeue", "Run a job again.", operate, (*Server).againByForm),
		form("/admin/jobs/:id/cancel", "jobs.cancel", "Cancel a job.", operate, (*Server).cancelByForm),
		form("/admin/jobs/:id/delete", "jobs.delete", "Delete a failed job.", operate, (*Server).deleteByForm),
		page("/admin/jobs/:id/edit", "pages.edit", "Run a job again with another payload.", operate, (*Server).editPage),
		form("/admin/jobs/:id/edit", "jobs.enqueue", "Run a job again with another payload.", operate, (*Server).runEdited),
		page("/admin/enqueue", "pages.enqueue", "Enqueue a job.", enqueue, (*Server).enqueuePage),
		form("/admin/enqueue", "jobs.enqueue", "Enqueue a job.", enqueue, (*Server).enqueueByForm),
		page("/admin/failed", "pages.failed", "Failed jobs by cause.", read, (*Server).failedPage),
		form("/admin/failed/canary", "failed.retry", "Retry one job of a cause.", operate, (*Server).canary),
		form("/admin/start", "jobs.enqueue", "Start a type from its page.", enqueue, (*Server).start),

		page("/admin/queues", "pages.queues", "Queues.", read, (*Server).queuesPage),
		form("/admin/queues/:name/pause", "queues.pause", "Pause a queue.", operate, (*Server).pauseByForm).Requires(needsQueues),
		form("/admin/queues/:name/continue", "queues.continue", "Continue a queue.", operate, (*Server).continueByForm).Requires(needsQueues),
		page("/admin/workers", "pages.workers", "Workers.", read, (*Server).workersPage),
		form("/admin/workers/:id/stop", "workers.stop", "Stop a worker.", operate, (*Server).stopByForm).Requires(needsWorkers),
		form("/admin/workers/restart", "workers.restart", "Restart all workers.", operate, (*Server).restartByForm).Requires(needsWorkers),
		page("/admin/schedules", "pages.schedules", "Schedules.", read, (*Server).schedulesPage),
		page("/admin/schedules/:name", "pages.entry", "Change a schedule entry.", operate, (*Server).entryPage).Requires(needsSchedules),
		form("/admin/schedules/:name", "schedules.change", "Change a schedule entry.", operate, (*Server).changeEntry).Requires(needsSchedules),
		form("/admin/schedules/:name/run", "schedules.run", "Enqueue an entry's job now.", operate, (*Server).runScheduleByForm).Requires(needsSchedules),

		page("/admin/settings", "pages.settings", "Settings.", access.Admin, (*Server).settingsPage),
		page("/admin/tokens", "pages.tokens", "Tokens of programs.", access.Admin, (*Server).tokensPage),
		form("/admin/tokens", "tokens.create", "Make a token.", access.Admin, (*Server).tokenByForm),
		form("/admin/locks/:id/delete", "locks.delete", "Let an address sign in again.", access.Admin, (*Server).unlockByForm),
		form("/admin/tokens/:id/revoke", "tokens.revoke", "End a token at once.", access.Admin, (*Server).revokeTokenByForm),
		page("/admin/audit", "pages.audit", "Audit.", access.Admin, (*Server).auditPage),
	}
	return all
}
