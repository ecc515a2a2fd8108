package tables

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Options say which tables a Store works on. Zero fields mean the defaults
// that are named.
type Options struct {
	// Prefix of the CMS's tables (Laravel's DB_PREFIX). Ours have none.
	Prefix string
	// Table and FailedTable are "jobs" and "failed_jobs".
	Table, FailedTable string
	// Registry knows which types are ours. Required.
	Registry *jobs.Registry
	// DefaultQueue is where jobs go that name none: "default".
	DefaultQueue string
	// OwnQueues are those whose unreadable rows fail permanently instead of being left to
	// PHP: {"cmsjobs"}. In the extended layout every queue is our own.
	OwnQueues []string
	// Connection is written to failed_jobs.connection: "database".
	Connection string
	// RetryAfter must equal the CMS's DB_QUEUE_RETRY_AFTER: 90 s. Every worker
	// on one table must use the same.
	RetryAfter time.Duration
	// Zone is the CMS's (settings.time_zone), in which failed_at is written: UTC.
	Zone *time.Location
	// OwnDB holds our tables where the CMS's database gives no right to make any.
	OwnDB *sqlx.DB
	// KeepData is up to how many bytes a job's data is kept in the history: 4096.
	// Negative keeps none.
	KeepData int
	// Logger gets what an administrator should know: nil discards it.
	Logger *slog.Logger
	// Wake is called with the queue after due jobs were committed.
	Wake func(queue string)
	// RestartedAt reads when PHP's queue:restart was last called, from the CMS's
	// cache; nil where that is unknown.
	RestartedAt func(context.Context) (time.Time, error)
	// DatabaseClock replaces the database's clock. For tests only.
	DatabaseClock func() time.Time
	// Clock measures lengths of time: time.Now.
	Clock func() time.Time
	// Monotonic is what jumps of the database's clock are measured against:
	// time.Now; with a DatabaseClock they are not, unless it is set.
	Monotonic func() time.Time
}

func (o *Options) defaults() {
	o.Table, o.FailedTable = cmp.Or(o.Table, "jobs"), cmp.Or(o.FailedTable, "failed_jobs")
	o.DefaultQueue, o.Connection = cmp.Or(o.DefaultQueue, "default"), cmp.Or(o.Connection, "database")
	o.RetryAfter = cmp.Or(o.RetryAfter, 90*time.Second)
	o.KeepData = cmp.Or(o.KeepData, 4096)
	if o.OwnQueues == nil {
		o.OwnQueues = []string{"cmsjobs"}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wake == nil {
		o.Wake = func(string) {}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Monotonic == nil && o.DatabaseClock == nil {
		o.Monotonic = time.Now
	}
}
