package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// pageRoutes are the admin pages and the forms on them. Forms answer 303 and
// the page shows what came of it; what is dangerous asks first.
func pageRoutes() []route {
	page := func(path, name, summary string, scope access.Scope, handle func(*Server, echo.Context) error) route {
		return route{Method: http.MethodGet, Path: path, Name: name, Summary: summary, Scope: scope, Managed: scope == access.Read, Page: true, Type: "text/html", handle: handle}
	}
	form := func(path, name, summary string, scope access.Scope, handle func(*Server, echo.Context) error) route {
		return route{Method: http.MethodPost, Path: path, Name: name, Summary: summary, Scope: scope, Managed: scope == access.Operate, Page: true, Type: "text/html", handle: handle}
	}
	const read, operate, enqueue = access.Read, access.Operate, access.Enqueue
	look := form("/admin/look", "pages.look", "Choose theme and language.", "", (*Server).look)
	look.Quiet = true
	export := page("/admin/failed/export", "failed.export", "Failed jobs as JSON lines.", read, (*Server).exportFailed)
	export.Stream = true
	all := []route{
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
		form("/admin/jobs/:id/forget", "jobs.delete", "Forget a failed job.", operate, (*Server).forgetByForm),
		page("/admin/jobs/:id/edit", "pages.edit", "Run a job again with another payload.", operate, (*Server).editPage),
		form("/admin/jobs/:id/edit", "jobs.enqueue", "Run a job again with another payload.", operate, (*Server).runEdited),
		page("/admin/enqueue", "pages.enqueue", "Enqueue a job.", enqueue, (*Server).enqueuePage),
		form("/admin/enqueue", "jobs.enqueue", "Enqueue a job.", enqueue, (*Server).enqueueByForm),
		page("/admin/failed", "pages.failed", "Failed jobs by cause.", read, (*Server).failedPage),
		form("/admin/failed/canary", "failed.retry", "Retry one job of a cause.", operate, (*Server).canary),
	}
	return all
}
