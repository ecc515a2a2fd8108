package conditions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Queue is what is read of the queue; the store implements it.
type Queue interface {
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
	Workers(ctx context.Context) ([]jobs.WorkerRecord, error)
	Backlogs(ctx context.Context, known func(jobType string) bool) ([]jobs.QueueBacklog, error)
	Outcomes(ctx context.Context, since time.Duration, except string) (failed, completed int64, err error)
	Volume(ctx context.Context, limit int64) (jobs.Volume, error)
}

// Server is what is asked of the database server; the store implements it.
type Server interface {
	// TryWriting writes nothing, but would be refused where nothing can be written.
	TryWriting(ctx context.Context) error
	FailedByPHP(ctx context.Context, since time.Time, known func(string) bool) (map[string]int, error)
}

// Circuit is a dependency whose circuit breaker is open.
type Circuit struct {
	Dependency, LastError string
}

// OverdueEntry is a schedule entry whose tick was not taken in time.
type OverdueEntry struct {
	Entry string
	Tick  time.Time
}

// Backups is what is known of backups without asking their destinations.
type Backups struct {
	// LastComplete and LastVerification are zero where there was none. Verifications says that
	// verifications are wanted.
	LastComplete, LastVerification time.Time
	Verifications                  bool
	Unfinished                     string   // what is known of a restore that did not finish
	TempDatabases                  []string // databases or files of verifications, while none runs
	Log                            string   // what keeps the binary log from being archived
}

// Process names this process. Its scheduler, where it runs one, says in
// Scheduled when it last went through the timetable.
type Process struct {
	ID, Host, Version, Parts string
	PID                      int
	Scheduled                func() time.Time
}

// Config is what an Evaluator needs. DB, Queue, Server, Known, Now and Logger
// are required; the conditions of what is nil do not apply.
type Config struct {
	DB     *sqlx.DB // holds cmsjobs_conditions, cmsjobs_processes, cmsjobs_pings, cmsjobs_breakers
	Queue  Queue
	Server Server
	// Notification is the type of notifications, which the rate of failures leaves out.
	Notification string
	// Known says whether this program can run a type.
	Known func(jobType string) bool
	// Writes is what this process wrote lately; nil: a command, whose first
	// failed write counts.
	Writes *Writes
	// ReadOnly and Full know errors of the database.
	ReadOnly, Full func(error) bool
	// Folders are written to; Free is the space left for this user.
	Folders []string
	Free    func(folder string) (int64, error)
	// Circuits lists the open ones; it is asked while cmsjobs_breakers has one.
	Circuits func(context.Context) ([]Circuit, error)
	// Scheduling says that the configuration wants a scheduler.
	Scheduling bool
	// Overdue lists entries whose tick is later than late.
	Overdue func(ctx context.Context, late time.Duration) ([]OverdueEntry, error)
	Backups func(context.Context) (Backups, error)

	// Limits replace those of the list; Off are conditions that are not wanted.
	Limits map[string]Limit
	Off    []string
	// Every is the interval: 20 s.
	Every time.Duration
	// Process is nil for a command: it changes no state and notifies no one.
	Process *Process
	// Notify is called once for each change, by the process that wrote it.
	// Direct is called where the database takes no notification.
	Notify, Direct func(context.Context, Change) error
	// Pinger may be nil.
	Pinger *Pinger

	Now    func() time.Time
	Logger *slog.Logger
}

// Change is a condition that began or ended.
type Change struct {
	Definition
	Began  bool
	At     time.Time // of the change
	Since  time.Time // it began
	Detail string
	// Unattended says that no worker is alive, so that a job would wait.
	Unattended bool
	// Told says that Direct notified of it before.
	Told bool
}

// Pinger calls an outside monitor while all is well, and is silent otherwise:
// the monitor raises the alarm when it hears nothing (a dead man's switch).
type Pinger struct {
	// URL is called every Every while no failing condition holds, and unless all
	// workers died; "" is none.
	URL   string
	Every time.Duration // 1 min
	// Entries are called once for each success of a schedule entry, by name.
	Entries map[string]string
	// Successes are when the jobs of entries last completed.
	Successes func(ctx context.Context, entries []string) (map[string]time.Time, error)
	// Client must refuse private addresses (outbound.New).
	Client *http.Client
}

func (c *Config) check() error {
	if c.DB == nil || c.Queue == nil || c.Server == nil || c.Known == nil || c.Now == nil || c.Logger == nil {
		return errors.New("conditions: DB, Queue, Server, Known, Now and Logger are required")
	}
	if c.Every <= 0 {
		c.Every = 20 * time.Second
	}
	never := func(error) bool { return false }
	if c.ReadOnly == nil {
		c.ReadOnly = never
	}
	if c.Full == nil {
		c.Full = never
	}
	if c.Notify == nil {
		c.Notify = func(context.Context, Change) error { return nil }
	}
	return nil
}
