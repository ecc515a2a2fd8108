package schedules

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// What an installation may lack.
const (
	needsTicker    = "cron route"
	needsSchedules = "schedule"
)

// The lists of the API.
type (
	ScheduleList = ops.Items[ops.ScheduleView]
	TickList     = ops.ListView[ops.TickView]
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature; a nil port is one that is not configured.
func Feature(c ops.Control, t Ticker) web.Feature {
	h := handlers{c, t}
	f := web.Feature{Name: "schedules", Path: "/admin/schedules", Group: web.Queue, Files: files,
		Chapters: map[string]string{"schedules": "admin#schedules", "entry": "admin#schedules"},
		Routes:   append(h.scheduleRoutes(), h.pageRoutes()...)}
	if c.Schedules == nil {
		f.Missing = append(f.Missing, needsSchedules)
	}
	if t == nil {
		f.Missing = append(f.Missing, needsTicker)
	}
	return f
}

func (h handlers) pageRoutes() []web.Route {
	const read, operate = access.Read, access.Operate
	return []web.Route{
		web.PageRoute("/admin/schedules", "pages.schedules", "Schedules.", read, h.schedulesPage),
		web.PageRoute("/admin/schedules/:name", "pages.entry", "Change a schedule entry.", operate,
			h.entryPage).Requires(needsSchedules),
		web.FormRoute("/admin/schedules/:name", "schedules.change", "Change a schedule entry.", operate,
			h.changeEntry).Requires(needsSchedules),
		web.FormRoute("/admin/schedules/:name/run", "schedules.run", "Enqueue an entry's job now.", operate,
			h.runScheduleByForm).Requires(needsSchedules),
	}
}

func (h handlers) scheduleRoutes() []web.Route {
	const get, post, patch = http.MethodGet, http.MethodPost, http.MethodPatch
	tick := web.Route{Method: post, Name: "cron.tick", Summary: "Enqueue what is due by the schedule and run due " +
		"jobs until none is left, for hosts without a daemon.", Scope: access.Operate, Stream: true,
		Answer: ops.TickReport{}, Needs: needsTicker, Handle: h.tick}
	v1 := tick
	tick.Path, v1.Path = "/api/cron/tick", "/api/v1/cron/tick"
	return []web.Route{
		tick, v1,
		{Method: get, Path: "/api/v1/schedules", Name: "schedules.list", Summary: "Schedule entries with their last " +
			"and next ticks.", Scope: access.Read, Answer: ScheduleList{}, Needs: needsSchedules,
			Handle: h.listSchedules},
		{Method: patch, Path: "/api/v1/schedules/:name", Name: "schedules.change",
			Summary: "Change an entry; reset takes it back to the configuration.", Scope: access.Operate,
			Body: ScheduleChange{}, Answer: ops.ScheduleView{}, Needs: needsSchedules, Handle: h.changeSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/run", Name: "schedules.run",
			Summary: "Enqueue an entry's job now.", Scope: access.Operate, Answer: ops.Enqueued{},
			Status: http.StatusCreated, Needs: needsSchedules, Handle: h.runSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/pause", Name: "schedules.pause",
			Summary: "Let an entry's ticks pass.", Scope: access.Operate, Answer: ops.ScheduleView{},
			Needs: needsSchedules, Handle: h.pauseSchedule},
		{Method: post, Path: "/api/v1/schedules/:name/continue", Name: "schedules.continue",
			Summary: "Let an entry tick again.", Scope: access.Operate, Answer: ops.ScheduleView{},
			Needs: needsSchedules, Handle: h.continueSchedule},
		{Method: get, Path: "/api/v1/schedules/:name/history", Name: "schedules.history",
			Summary: "An entry's ticks, newest first.", Scope: access.Read, Query: web.ListQuery(), Answer: TickList{},
			Needs: needsSchedules, Handle: h.scheduleHistory},
	}
}
