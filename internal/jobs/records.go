package jobs

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// ErrNotFound says that nothing has the id that was asked for. Anyone who looks
// things up for people wraps it.
var ErrNotFound = errors.New("not found")

// NotFound is an error that is ErrNotFound and says only its own text.
func NotFound(text string) error { return notFound(text) }

type notFound string

func (n notFound) Error() string { return string(n) }

func (n notFound) Unwrap() error { return ErrNotFound }

// ErrConflict says that things stand in a way that forbids what was asked (a
// running job cannot be deleted). What wraps it says what to do instead.
var ErrConflict = phrase.Errorf("not possible now")

// ErrInvalid says that what a person asked for cannot be (a cron line that
// cannot be read, a cursor that is not ours). What wraps it says why.
var ErrInvalid = errors.New("invalid")

// Invalid marks an error as ErrInvalid and leaves its text as it is.
func Invalid(err error) error { return invalid{err} }

type invalid struct{ error }

func (i invalid) Unwrap() []error { return []error{i.error, ErrInvalid} }

// WorkerRecord is what people see of a worker: what it said at its last
// heartbeat, and when that was by the database's clock.
type WorkerRecord struct {
	WorkerInfo
	SeenAt time.Time
	// Alive is false when the last heartbeat is older than a live worker's can be.
	Alive bool
	// OrderedSlots is how many slots people gave this worker by its ID; 0: none.
	OrderedSlots int
}

// SoonLength is how far ScheduleRecord.Soon looks.
const SoonLength = 12 * time.Hour

// ScheduleRecord is what people see of a schedule entry.
type ScheduleRecord struct {
	Name    string
	Type    string
	Queue   string
	Cron    string // five fields, or "after <entry>" where it follows another
	Zone    string
	Data    json.RawMessage
	Paused  bool
	CatchUp string // "skip", "latest" or "all"
	Changed bool   // differs from the timetable that the program or configuration gave
	// Next are the next ticks, soonest first (about five); empty while paused.
	Next []time.Time
	// Soon are the ticks of the next SoonLength in the schedule's zone, soonest first.
	Soon []time.Time
	// Last is the newest tick, nil when there was none.
	Last *TickRecord
}

// TickRecord is one tick of a schedule entry.
type TickRecord struct {
	Entry   string
	Tick    time.Time // the moment that was due
	At      time.Time // when it was enqueued, or found missed
	UUID    string    // of the job; "" when none was enqueued
	Outcome string    // "enqueued", that of [TickOutcome] once a run ended, "missed", "skipped"
	// Duration of the job's last run; 0 while there is none.
	Duration time.Duration
	Note     string
}

// ScheduleChange changes an entry; nil fields stay as they are.
type ScheduleChange struct {
	Cron   *string
	Paused *bool
	Data   json.RawMessage
	// Reset takes the entry back to what program and configuration say.
	Reset bool
}

// ScheduleEdit is what people changed of an entry; nil fields are as the
// timetable says.
type ScheduleEdit struct {
	Cron   *string
	Paused *bool
	Data   json.RawMessage
	// ChangedAt is when they did, by the database's clock. Ticks before it are
	// not made up for.
	ChangedAt time.Time
}

// Throughput is what ended in one step of time.
type Throughput struct {
	At             time.Time
	Completed      int64         // completed attempts
	FailedAttempts int64         // see Figures
	Failed         int64         // jobs that failed: the failed attempts that ended a job
	Duration, Wait time.Duration // averages
}

// SeriesSplit is what the runs of a [Series] are counted by.
type SeriesSplit string

// The splits of a series.
const (
	ByOutcome SeriesSplit = "outcome" // completed; retried, which crashed ones are; failed
	ByType    SeriesSplit = "type"
	ByQueue   SeriesSplit = "queue"
)

// Series are the completed and failed attempts in steps of equal length. Each
// list in it has one value a step, oldest first.
type Series struct {
	Since  time.Time // of the first step
	Step   time.Duration
	Counts []NamedCounts
	// Waits until the start and Durations of the attempts; AllWaits and
	// AllDurations are those of all steps together.
	Waits, Durations       []Percentiles
	AllWaits, AllDurations Percentiles
	// Waiting and Running are how many attempts did so on average in each step, of those
	// that have ended: about, as their waits and durations are known by ranges.
	Waiting, Running []float64
}

// NamedCounts are the attempts of an outcome, a type or a queue. The name of
// those that are not counted by their own name is "".
type NamedCounts struct {
	Name   string
	Counts []int64
}

// Percentiles say that half, 95 % and 99 % of attempts took at most so long,
// within 7 %. Without attempts there are none.
type Percentiles struct {
	Attempts      int64
	P50, P95, P99 time.Duration
}

// Batch is a batch of PHP's jobs, as Laravel counts it.
type Batch struct {
	ID, Name               string
	Total, Pending, Failed int64
	// FailedJobs are the UUIDs of the first failed ones.
	FailedJobs                         []string
	CreatedAt, CancelledAt, FinishedAt time.Time
}
