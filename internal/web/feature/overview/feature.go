package overview

import (
	"context"
	"embed"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Ports are what the page summarizes besides the server's own and the features.
type Ports struct {
	Workers   Workers   // nil: there is no list of them
	Schedules Schedules // nil: there is no schedule
	// Conditions are everything that is watched.
	Conditions func(context.Context) []web.Condition
	// Failing are the names of the checks that fail now.
	Failing func(*web.Request) []string
	// Disabled says that jobs run while the caller waits.
	Disabled bool
}

// Workers lists workers.
type Workers interface {
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
}

// Schedules lists schedule entries.
type Schedules interface {
	Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error)
}

//go:embed *.html *.yaml
var files embed.FS

type handlers struct{ Ports }

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p}
	return web.Feature{Name: "overview", Path: "/admin", Group: web.Queue, Files: files, Warm: warm,
		Routes: []web.Route{web.PageRoute("/admin", "pages.overview", "Is anything working?", access.Read,
			h.overviewPage)}}
}
