package web

import (
	"net/http"
	"sort"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/compat"
)

// APIDialect is whose words a route speaks: our own, or a specification's.
type APIDialect int

const (
	V1               APIDialect = iota // queued, processing, completed, failed, cancelled
	PocketBaseCompat                   // S1: pending, processing, completed, failed
	S2Compat                           // S2: queued, running, succeeded, failed; camelCase
	familyCount                        // how many there are
)

// Route is one thing that can be asked, and who may ask it.
type Route struct {
	Method, Path string
	// Name is what the trail and the document call it: area.verb.
	Name, Summary string
	// Scope that it needs; "" is open to everybody.
	Scope access.Scope
	// Managed routes are opened by manage_rule, too.
	Managed bool
	// Stream routes have no time limit.
	Stream bool
	// Quiet routes change nothing although their method could.
	Quiet   bool
	Dialect APIDialect
	Query   []string // names of parameters, described in openapi
	Body    any      // a value of the body's type; nil for none
	Answer  any      // a value of the answer's type; nil for none
	Type    string   // of the answer; "" is application/json
	Status  int      // of success; 0 is 200
	// Needs is the part without which it answers 404.
	Needs string
	// Page routes answer people with HTML; they are not in the document.
	Page bool
	// Handle answers; routes of the core have handle instead.
	Handle func(*Request) error
	handle func(*Server, echo.Context) error
}

// changes says whether the route can change anything.
func (r Route) changes() bool { return r.Method != http.MethodGet && !r.Quiet }

// Requires is the route as one that needs a part.
func (r Route) Requires(p string) Route {
	r.Needs = p
	return r
}

var (
	pageQuery = []string{"limit", "offset", "cursor"}
	jobQuery  = append([]string{"ids", "status", "type", "queue", "q", "cause", "since", "until"}, pageQuery...)
)

// ListQuery names the parameters of a list's page.
func ListQuery() []string { return pageQuery }

// Routes lists every route, of the core and of features: those of the API are
// documented, all of them are in the table of rights.
func Routes(features []Feature) []Route {
	var all []Route
	for _, area := range [][]Route{jobRoutes(), failedRoutes(), queueRoutes(), scheduleRoutes(), settingsRoutes(), accessRoutes(), machineRoutes(), pageRoutes()} {
		all = append(all, area...)
	}
	for _, f := range features {
		all = append(all, f.Routes...)
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].Path < all[k].Path })
	return all
}

func jobRoutes() []Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	enqueue := Route{Method: post, Name: "jobs.enqueue", Summary: "Enqueue a job.", Scope: access.Enqueue, Body: EnqueueRequest{}, Answer: ops.Enqueued{}, Status: http.StatusCreated, handle: (*Server).enqueue}
	list := Route{Method: get, Name: "jobs.list", Summary: "List jobs, wherever their rows lie.", Scope: access.Read, Managed: true, Query: jobQuery, Answer: JobList{}, handle: (*Server).listJobs}
	show := Route{Method: get, Name: "jobs.show", Summary: "Show a waiting, running, finished or failed job, by UUID or number.", Scope: access.Read, Managed: true, Answer: ops.JobView{}, handle: (*Server).showJob}
	stats := Route{Method: get, Name: "jobs.stats", Summary: "Figures of the queue.", Scope: access.Read, Managed: true, Answer: ops.StatsView{}, handle: (*Server).stats}
	requeue := Route{Method: post, Name: "jobs.requeue", Summary: "Run a job again: a failed one is retried, a delayed one is due now, an ended one is enqueued anew.", Scope: access.Operate, Managed: true, Answer: ops.JobView{}, handle: (*Server).requeueJob}
	cancel := Route{Method: post, Name: "jobs.cancel", Summary: "Cancel a waiting job, or ask a running one to stop.", Scope: access.Operate, Managed: true, Answer: Affected{}, handle: (*Server).cancelJob}
	remove := Route{Method: del, Name: "jobs.delete", Summary: "Delete a waiting or failed job.", Scope: access.Operate, Managed: true, Status: http.StatusNoContent, handle: (*Server).deleteJob}
	at := func(r Route, path string, words APIDialect) Route {
		r.Path, r.Dialect = path, words
		switch words {
		case S2Compat:
			r.Answer = s2Answer(r.Answer)
		case PocketBaseCompat:
			r.Body, r.Answer = s1Body(r.Body), s1Answer(r.Answer)
		}
		return r
	}
	return []Route{
		at(enqueue, "/api/v1/jobs", V1), at(list, "/api/v1/jobs", V1), at(stats, "/api/v1/jobs/stats", V1), at(show, "/api/v1/jobs/:id", V1),
		at(requeue, "/api/v1/jobs/:id/requeue", V1), at(requeue, "/api/v1/jobs/:id/retry", V1), at(cancel, "/api/v1/jobs/:id/cancel", V1), at(remove, "/api/v1/jobs/:id", V1),

		at(enqueue, "/api/jobs/enqueue", PocketBaseCompat), at(list, "/api/jobs", PocketBaseCompat), at(stats, "/api/jobs/stats", PocketBaseCompat), at(show, "/api/jobs/:id", PocketBaseCompat),
		at(requeue, "/api/jobs/:id/requeue", PocketBaseCompat), at(remove, "/api/jobs/:id", PocketBaseCompat),

		at(list, "/api/admin/jobs", S2Compat), at(show, "/api/admin/jobs/:id", S2Compat), at(requeue, "/api/admin/jobs/:id/retry", S2Compat), at(cancel, "/api/admin/jobs/:id/cancel", S2Compat),

		{Method: post, Path: "/api/v1/jobs/batch", Name: "jobs.enqueueBatch", Summary: "Enqueue up to 1000 jobs: all of them, or none.", Scope: access.Enqueue, Body: EnqueueBatch{}, Answer: EnqueuedBatch{}, Status: http.StatusCreated, handle: (*Server).enqueueBatch},
		{Method: post, Path: "/api/v1/jobs/bulk", Name: "jobs.bulk", Summary: "Change all jobs that a filter chooses. dry_run only counts them; many are changed by a job that reports its progress.", Scope: access.Operate, Body: BulkRequest{}, Answer: ops.Changed{}, handle: (*Server).bulk},
		{Method: get, Path: "/api/v1/jobs/:id/explain", Name: "jobs.explain", Summary: "Why is this job not running?", Scope: access.Read, Managed: true, Answer: ops.Explanation{}, handle: (*Server).explainJob},
		{Method: get, Path: "/api/v1/explain/:id", Name: "jobs.explain", Summary: "Why is this job not running?", Scope: access.Read, Managed: true, Answer: ops.Explanation{}, handle: (*Server).explainJob},
		{Method: get, Path: "/api/v1/jobs/:id/runs", Name: "jobs.runs", Summary: "The attempts of one job, newest first.", Scope: access.Read, Managed: true, Query: pageQuery, Answer: RunList{}, Needs: needsHistory, handle: (*Server).jobRuns},
		{Method: get, Path: "/api/v1/jobs/:id/log", Name: "jobs.log", Summary: "What the job's handler said, oldest first.", Scope: access.Read, Managed: true, Answer: ops.LogView{}, Needs: needsHistory, handle: (*Server).jobLog},
		{Method: get, Path: "/api/v1/runs", Name: "runs.list", Summary: "Runs that ended, newest first.", Scope: access.Read, Query: jobQuery, Answer: RunList{}, Needs: needsHistory, handle: (*Server).listRuns},
		{Method: get, Path: "/api/v1/throughput", Name: "runs.throughput", Summary: "Ended runs in steps of time, oldest first.", Scope: access.Read, Query: []string{"since", "step"}, Answer: ThroughputView{}, Needs: needsHistory, handle: (*Server).throughput},
		{Method: get, Path: "/api/v1/types", Name: "types.list", Summary: "The types that can be enqueued, with an example of each payload.", Scope: access.Read, Answer: TypeList{}, handle: (*Server).jobTypes},
		{Method: get, Path: "/api/v1/events", Name: "events.stream", Summary: "Live changes as server-sent events: stats, job, run.", Scope: access.Read, Stream: true, Type: "text/event-stream", handle: (*Server).events},
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

func failedRoutes() []Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []Route{
		{Method: get, Path: "/api/v1/failed", Name: "failed.list", Summary: "Failed jobs, newest first.", Scope: access.Read, Query: jobQuery, Answer: JobList{}, handle: (*Server).listFailed},
		{Method: get, Path: "/api/v1/failed/groups", Name: "failed.groups", Summary: "Failed jobs by cause, most first.", Scope: access.Read, Query: []string{"type", "queue", "since", "until"}, Answer: GroupList{}, Needs: needsHistory, handle: (*Server).failureGroups},
		{Method: post, Path: "/api/v1/failed/:id/retry", Name: "failed.retry", Summary: "Put a failed job back into its queue.", Scope: access.Operate, Answer: ops.JobView{}, handle: (*Server).retryFailed},
		{Method: del, Path: "/api/v1/failed/:id", Name: "failed.delete", Summary: "Delete a failed job.", Scope: access.Operate, Status: http.StatusNoContent, handle: (*Server).deleteFailed},
		{Method: post, Path: "/api/v1/failed/retry", Name: "failed.retryAll", Summary: "Retry failed jobs by ids or by a filter.", Scope: access.Operate, Body: BulkSelection{}, Answer: ops.Changed{}, handle: (*Server).retryMany},
		{Method: post, Path: "/api/v1/failed/delete", Name: "failed.deleteAll", Summary: "Delete failed jobs by ids or by a filter.", Scope: access.Operate, Body: BulkSelection{}, Answer: ops.Changed{}, handle: (*Server).deleteMany},
	}
}

func queueRoutes() []Route {
	const get, post = http.MethodGet, http.MethodPost
	return []Route{
		{Method: get, Path: "/api/v1/queues", Name: "queues.list", Summary: "Queues with their depth, oldest job and workers.", Scope: access.Read, Answer: QueueList{}, handle: (*Server).listQueues},
		{Method: post, Path: "/api/v1/queues/:name/pause", Name: "queues.pause", Summary: "Let no worker take jobs from a queue.", Scope: access.Operate, Answer: Affected{}, Needs: needsQueues, handle: (*Server).pauseQueue},
		{Method: post, Path: "/api/v1/queues/:name/continue", Name: "queues.continue", Summary: "Let workers take jobs from a queue again.", Scope: access.Operate, Answer: Affected{}, Needs: needsQueues, handle: (*Server).continueQueue},
		{Method: post, Path: "/api/v1/queues/:name/clear", Name: "queues.clear", Summary: "Cancel all waiting jobs of a queue. dry_run only counts them.", Scope: access.Operate, Query: []string{"dry_run"}, Answer: ops.Changed{}, handle: (*Server).clearQueue},
		{Method: get, Path: "/api/v1/workers", Name: "workers.list", Summary: "Workers and what they run.", Scope: access.Read, Answer: WorkerList{}, Needs: needsWorkers, handle: (*Server).listWorkers},
		{Method: post, Path: "/api/v1/workers/:id/stop", Name: "workers.stop", Summary: "Make a worker finish what it runs and exit.", Scope: access.Operate, Answer: Affected{}, Needs: needsWorkers, handle: (*Server).stopWorker},
		{Method: post, Path: "/api/v1/workers/restart", Name: "workers.restart", Summary: "Make all workers finish what they run and exit; their supervisor starts them anew.", Scope: access.Operate, Answer: Affected{}, Needs: needsWorkers, handle: (*Server).restartWorkers},
	}
}

func scheduleRoutes() []Route {
	const get, post, patch = http.MethodGet, http.MethodPost, http.MethodPatch
	tick := Route{Method: post, Name: "cron.tick", Summary: "Enqueue what is due by the schedule and run due jobs until none is left, for hosts without a daemon.", Scope: access.Operate, Stream: true, Answer: ops.TickReport{}, Needs: needsTicker, handle: (*Server).tick}
	v1 := tick
	tick.Path, v1.Path = "/api/cron/tick", "/api/v1/cron/tick"
	return []Route{
		tick, v1,
		{Method: get, Path: "/api/v1/schedules", Name: "schedules.list", Summary: "Schedule entries with their last and next ticks.", Scope: access.Read, Answer: ScheduleList{}, Needs: needsSchedules, handle: (*Server).listSchedules},
		{Method: patch, Path: "/api/v1/schedules/:name", Name: "schedules.change", Summary: "Change an entry; reset takes it back to the configuration.", Scope: access.Operate, Body: ScheduleChange{}, Answer: ops.ScheduleView{}, Needs: needsSchedules, handle: (*Server).changeSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/run", Name: "schedules.run", Summary: "Enqueue an entry's job now.", Scope: access.Operate, Answer: ops.Enqueued{}, Status: http.StatusCreated, Needs: needsSchedules, handle: (*Server).runSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/pause", Name: "schedules.pause", Summary: "Let an entry's ticks pass.", Scope: access.Operate, Answer: ops.ScheduleView{}, Needs: needsSchedules, handle: (*Server).pauseSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/continue", Name: "schedules.continue", Summary: "Let an entry tick again.", Scope: access.Operate, Answer: ops.ScheduleView{}, Needs: needsSchedules, handle: (*Server).continueSchedule},
		{Method: get, Path: "/api/v1/schedules/:name/history", Name: "schedules.history", Summary: "An entry's ticks, newest first.", Scope: access.Read, Query: pageQuery, Answer: TickList{}, Needs: needsSchedules, handle: (*Server).scheduleHistory},
	}
}

func settingsRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/settings", Name: "settings.list", Summary: "The configuration and where each value came from.", Scope: access.Admin, Answer: SettingList{}, Needs: needsSettings, handle: (*Server).listSettings},
	}
}

func accessRoutes() []Route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	return []Route{
		{Method: post, Path: "/api/v1/session", Name: "session.create", Summary: "Sign in by name and password; the session comes as a cookie.", Body: SignInRequest{}, Answer: SessionView{}, Status: http.StatusCreated, handle: (*Server).signIn},
		{Method: get, Path: "/api/v1/session", Name: "session.show", Summary: "Who am I, and what may I do?", Answer: SessionView{}, handle: (*Server).session},
		{Method: del, Path: "/api/v1/session", Name: "session.delete", Summary: "Sign out.", Status: http.StatusNoContent, handle: (*Server).signOut},
		{Method: get, Path: "/api/v1/tokens", Name: "tokens.list", Summary: "Tokens of programs, without their secrets.", Scope: access.Admin, Answer: TokenList{}, handle: (*Server).listTokens},
		{Method: post, Path: "/api/v1/tokens", Name: "tokens.create", Summary: "Make a token. The answer alone carries its secret.", Scope: access.Admin, Body: TokenRequest{}, Answer: TokenCreated{}, Status: http.StatusCreated, handle: (*Server).createToken},
		{Method: del, Path: "/api/v1/tokens/:id", Name: "tokens.revoke", Summary: "End a token at once.", Scope: access.Admin, Status: http.StatusNoContent, handle: (*Server).revokeToken},
		{Method: get, Path: "/api/v1/locks", Name: "locks.list", Summary: "Addresses whose sign-ins are refused for a while, because too many were wrong.", Scope: access.Admin, Answer: LockList{}, handle: (*Server).listLocks},
		{Method: del, Path: "/api/v1/locks/:id", Name: "locks.delete", Summary: "Let an address sign in again at once.", Scope: access.Admin, Status: http.StatusNoContent, handle: (*Server).unlock},
		{Method: get, Path: "/api/v1/audit", Name: "audit.list", Summary: "Who did what, when and from where; newest first.", Scope: access.Admin, Query: append([]string{"actor", "action", "target", "since", "until"}, pageQuery...), Answer: AuditEntryList{}, handle: (*Server).listAuditEntries},
	}
}

// machineRoutes are for what watches the service. They stay when the API is
// switched off.
func machineRoutes() []Route {
	const get = http.MethodGet
	return []Route{
		{Method: get, Path: "/healthz", Name: "health.process", Summary: "The process lives.", Answer: Health{}, handle: (*Server).alive},
		{Method: get, Path: "/livez", Name: "health.live", Summary: "The process lives.", Answer: Health{}, handle: (*Server).alive},
		{Method: get, Path: "/readyz", Name: "health.ready", Summary: "The service can work: no failing condition holds. 503 when one does. check=NAME,NAME asks for single conditions, warnings included.", Query: []string{"check"}, Answer: Health{}, handle: (*Server).ready},
		{Method: get, Path: "/api/v1/conditions", Name: "conditions.list", Summary: "Everything that is watched, whether it is wrong, since when, and how to fix it.", Scope: access.Read, Answer: ConditionList{}, handle: (*Server).listConditions},
		{Method: get, Path: "/metrics", Name: "metrics", Summary: "Figures for Prometheus.", Scope: access.Read, Type: "text/plain", handle: (*Server).metrics},
		{Method: get, Path: "/api/openapi.json", Name: "openapi.document", Summary: "This document.", Answer: map[string]any{}, handle: (*Server).openAPI},
		{Method: get, Path: "/api/docs", Name: "openapi.page", Summary: "This document, to be read.", Type: "text/html", handle: (*Server).docs},
	}
}

// always says whether a route stays when the API is switched off.
func (r Route) always() bool {
	for _, m := range machineRoutes() {
		if m.Path == r.Path && m.Scope != access.Enqueue {
			return true
		}
	}
	return false
}

func (s *Server) mount() {
	for _, r := range s.routes {
		if s.cfg.APIDisabled && !r.always() {
			continue
		}
		s.echo.Add(r.Method, r.Path, s.cors(r, s.authorize(r)))
	}
	if !s.cfg.APIDisabled {
		s.mountPages()
	}
	for path, handler := range s.cfg.Mount {
		s.echo.Any(path, echo.WrapHandler(handler))
	}
	s.mountPreflight()
}
