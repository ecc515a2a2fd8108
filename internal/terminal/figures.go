package terminal

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Figures are what the overview shows, by the names of the API.
type Figures struct {
	Site       string                 `json:"site,omitempty"`
	At         time.Time              `json:"at"`
	Stats      ops.StatsView          `json:"stats"`
	Hour       Hour                   `json:"hour"`
	Workers    []ops.WorkerView       `json:"workers"`
	Running    []ops.JobView          `json:"running"`
	Schedules  []ops.ScheduleView     `json:"schedules"`
	Failures   []ops.FailureGroupView `json:"failures"`
	Conditions []Condition            `json:"conditions"`
}

// Hour are the attempts of the last 60 minutes, one count a minute.
type Hour struct {
	Series []Counts `json:"series"`
	Wait   Spread   `json:"wait"`
}

// Counts are the attempts of one outcome.
type Counts struct {
	Name   string  `json:"name"`
	Counts []int64 `json:"counts"`
}

// Spread are percentiles of all attempts.
type Spread struct {
	All struct {
		Attempts int64 `json:"attempts"`
		P95      int64 `json:"p95"` // in milliseconds
	} `json:"all"`
}

// Condition is one that holds.
type Condition struct {
	Name     string    `json:"name"`
	Severity string    `json:"severity"` // failing, warning
	Active   bool      `json:"active"`
	Title    string    `json:"title"`
	Detail   string    `json:"detail,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Fix      string    `json:"fix"`
}

// Source has the figures.
type Source interface {
	// Figures are those of now.
	Figures(context.Context) (Figures, error)
	// Jobs are the newest that fit a filter.
	Jobs(context.Context, ops.Filter, int) ([]ops.JobView, error)
	// Job is one, with the newest lines of its log.
	Job(context.Context, string) (JobFigures, error)
}

// JobFigures are a job and what its handler wrote, oldest first.
type JobFigures struct {
	Job   ops.JobView    `json:"job"`
	Lines []jobs.LogLine `json:"lines"`
}

// Ended says that the job does not change any more.
func (f JobFigures) Ended() bool {
	switch f.Job.Status {
	case "completed", "failed", "cancelled":
		return true
	}
	return false
}

// How much of lists is asked for.
const (
	maxRunning  = 50
	maxFailures = 10
)

// Local asks the database.
type Local struct {
	Site       string
	History    History
	Schedules  func(context.Context) ([]jobs.ScheduleRecord, error) // nil: there is no schedule
	Conditions func(context.Context) ([]Condition, error)           // nil: they are not watched
	Find       func(context.Context, string) (jobs.Record, error)
	Log        func(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error)
	Viewer     ops.Viewer
	Now        func() time.Time
}

// History has jobs, workers and counts.
type History interface {
	Stats(context.Context) (jobs.Stats, error)
	Workers(context.Context) ([]jobs.WorkerRecord, error)
	Series(ctx context.Context, steps int, step time.Duration, by jobs.SeriesSplit) (jobs.Series, error)
	Jobs(context.Context, jobs.Filter, jobs.Page) (jobs.List[jobs.Record], error)
	Groups(context.Context, jobs.Filter) ([]jobs.FailureGroup, error)
}

// Figures implements Source.
func (l Local) Figures(ctx context.Context) (Figures, error) {
	f := Figures{Site: l.Site, At: l.Now().UTC()}
	stats, err := l.History.Stats(ctx)
	if err != nil {
		return f, fmt.Errorf("counting jobs: %w", err)
	}
	f.Stats = ops.Stats(stats)
	workers, err := l.History.Workers(ctx)
	if err != nil {
		return f, fmt.Errorf("listing workers: %w", err)
	}
	f.Workers = ops.Each(workers, l.Viewer.Worker)
	past, err := l.History.Series(ctx, 60, time.Minute, jobs.ByOutcome)
	if err != nil {
		return f, fmt.Errorf("counting attempts: %w", err)
	}
	for _, c := range past.Counts {
		f.Hour.Series = append(f.Hour.Series, Counts(c))
	}
	f.Hour.Wait.All.Attempts, f.Hour.Wait.All.P95 = past.AllWaits.Attempts, past.AllWaits.P95.Milliseconds()
	busy := jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}}
	if f.Running, err = l.list(ctx, busy, maxRunning); err != nil {
		return f, err
	}
	groups, err := l.History.Groups(ctx, jobs.Filter{})
	if err != nil {
		return f, fmt.Errorf("grouping failed jobs: %w", err)
	}
	f.Failures = ops.Each(groups[:min(len(groups), maxFailures)], l.Viewer.FailureGroup)
	if l.Schedules != nil {
		entries, err := l.Schedules(ctx)
		if err != nil {
			return f, fmt.Errorf("listing the schedule: %w", err)
		}
		f.Schedules = ops.Each(entries, l.Viewer.Schedule)
	}
	if l.Conditions != nil {
		if f.Conditions, err = l.Conditions(ctx); err != nil {
			return f, fmt.Errorf("measuring conditions: %w", err)
		}
	}
	return f, nil
}

// Jobs implements Source.
func (l Local) Jobs(ctx context.Context, f ops.Filter, limit int) ([]ops.JobView, error) {
	filter, err := f.Parse(l.Now())
	if err != nil {
		return nil, err
	}
	return l.list(ctx, filter, limit)
}

func (l Local) list(ctx context.Context, f jobs.Filter, limit int) ([]ops.JobView, error) {
	list, err := l.History.Jobs(ctx, f, jobs.Page{Limit: limit, Uncounted: true})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	return ops.Each(list.Items, l.Viewer.Job), nil
}

// Job implements Source.
func (l Local) Job(ctx context.Context, id string) (JobFigures, error) {
	job, err := l.Find(ctx, id)
	if err != nil {
		return JobFigures{}, err
	}
	lines, err := l.Log(ctx, job.UUID, ops.MaxLogLines)
	if err != nil {
		return JobFigures{}, fmt.Errorf("reading the log of job %s: %w", id, err)
	}
	return JobFigures{l.Viewer.Job(job), l.Viewer.Lines(lines)}, nil
}
