package overview

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// Ports are what the page summarizes besides the server's own and the features.
type Ports struct {
	Workers   Workers   // nil: there is no list of them
	Schedules Schedules // nil: there is no schedule
	// CronWords reads a cron line to a person; nil shows the line itself.
	CronWords func(lang locale.Printer, cron string) string
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

// Schedules lists schedule entries and their ticks.
type Schedules interface {
	Schedules(ctx context.Context) ([]jobs.ScheduleRecord, error)
	// Ticks are an entry's, newest first.
	Ticks(ctx context.Context, entry string, p jobs.Page) (jobs.List[jobs.TickRecord], error)
}

type handlers struct{ Ports }
