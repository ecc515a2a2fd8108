package web

import (
	"context"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The interfaces below are what this package needs of others. Package
// history implements them.
//
// Common rules: an id that nobody has is an error that wraps jobs.ErrNotFound;
// an action that the state of things forbids wraps jobs.ErrConflict; times are
// UTC; lists are newest first unless said. Methods that change something take
// who did it from the caller only where the table keeps it.

// Ledger shows jobs wherever their rows lie: jobs, failed_jobs, the history.
type Ledger interface {
	// Job finds a waiting, running, finished or failed job by its UUID, or by
	// its row's number in the jobs table (then in failed_jobs, then history).
	Job(ctx context.Context, id string) (jobs.Record, error)
	// Jobs lists; no States in the filter means all of them.
	Jobs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.Record], error)
	// Count counts what Jobs would list.
	Count(ctx context.Context, f jobs.Filter) (int64, error)
	Stats(ctx context.Context) (jobs.Stats, error)
}

// History shows runs and what handlers said in them.
type History interface {
	Runs(ctx context.Context, f jobs.Filter, p jobs.Page) (jobs.List[jobs.RunRecord], error)
	// Log returns the log lines of a job's runs, oldest first, at most limit.
	Log(ctx context.Context, uuid string, limit int) ([]jobs.LogLine, error)
	// Groups are the failed jobs by cause, most first.
	Groups(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error)
	// Throughput counts ended runs in the latest steps of equal length, oldest first.
	Throughput(ctx context.Context, steps int, step time.Duration) ([]jobs.Throughput, error)
	// Series counts attempts in the latest steps, by outcome, type or queue, and how
	// long they waited and took.
	Series(ctx context.Context, steps int, step time.Duration, by jobs.SeriesSplit) (jobs.Series, error)
}

// ErrUnavailable marks the error of a place that cannot be asked: a bucket whose
// server is down, say. The answer is 503, with the error's text.
var ErrUnavailable = errors.New("not every place of the backups can be read")

// Setting is one value of the configuration and where it came from. Secrets
// arrive masked.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Secret bool   `json:"secret"`
}

// Condition is one thing that can be wrong, and whether it is.
type Condition struct {
	Name     string    `json:"name"`
	Severity string    `json:"severity"` // failing, warning
	Active   bool      `json:"active"`
	Title    string    `json:"title"`
	Detail   string    `json:"detail,omitempty"`
	Since    time.Time `json:"since,omitzero"` // of the last change
	Limit    string    `json:"limit,omitempty"`
	Fix      string    `json:"fix"`
	Page     string    `json:"page,omitempty"` // where to look at it
	// Elsewhere says that another process saw it, about itself or its host.
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Error     string `json:"error,omitempty"` // why it could not be measured
}

// Failing is the severity that makes the service unready.
const Failing = "failing"
