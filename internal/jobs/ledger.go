package jobs

import (
	"encoding/json"
	"time"
)

// Status is where a job stands, in the words of the whole service.
type Status string

// The five statuses. A queued job may besides be delayed,
// retrying, stalled or paused: Record.Detail says so.
const (
	StatusQueued     Status = "queued"
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// ParseStatus reads the words of all specifications (pending, running,
// succeeded, COMPLETE …).
func ParseStatus(word string) (Status, bool) {
	switch word {
	case "queued", "pending", "waiting", "PENDING", "delayed", "retrying", "scheduled":
		return StatusQueued, true
	case "processing", "running", "RUNNING", "reserved":
		return StatusProcessing, true
	case "completed", "succeeded", "complete", "COMPLETE", "done":
		return StatusCompleted, true
	case "failed", "FAILED":
		return StatusFailed, true
	case "cancelled", "canceled":
		return StatusCancelled, true
	}
	return "", false
}

// Record is what people see of one job, wherever its row lies: waiting or
// running in jobs, finished in the history of runs, dead in failed_jobs.
type Record struct {
	ID          int64 // row number in the table where it lies
	UUID        string
	Type        string // for PHP's own jobs: the class's display name
	Queue       string
	Status      Status
	Detail      string // "delayed", "retrying", "stalled", "paused" or ""
	Foreign     bool   // PHP's own: shown, never touched
	Priority    int
	Attempt     int // starts so far
	MaxAttempts int
	Payload     []byte // as it stands in the table
	// PayloadOmitted says that the history did not keep what an ended job was to do, as it is
	// confidential or too large: Payload says "{}" for it, and it cannot run again.
	PayloadOmitted bool
	Worker         string
	Error          string // first line is the message
	Result         json.RawMessage
	Progress       *Progress
	EnqueuedAt     time.Time
	RunAt          time.Time
	StartedAt      time.Time // zero while it waits
	EndedAt        time.Time // zero until it ended
	Duration       time.Duration
	// Of a running job of PHP's, where this service runs it: the number of the PHP process,
	// and when the job's time-out is; zero where it has none.
	Process  int
	Deadline time.Time
}

// RunRecord is one run in the history.
type RunRecord struct {
	ID        int64
	UUID      string
	JobID     int64
	Type      string
	Queue     string
	Attempt   int
	Outcome   string // the text of an Outcome, or CrashedOutcome
	Worker    string
	Error     string
	Result    json.RawMessage
	StartedAt time.Time
	EndedAt   time.Time
	Duration  time.Duration
	Wait      time.Duration // from due to start
}

// Filter chooses jobs. Empty fields choose all.
type Filter struct {
	Statuses []Status
	Types    []string
	// ExceptKinds are left out, of jobs that wait, run or failed.
	ExceptKinds []string
	// Silenced types are left out of ended jobs: a list of those that did their work
	// is about others.
	Silenced []string
	Queues   []string
	UUIDs    []string
	// Text must stand in the payload or the error, ignoring case.
	Text string
	// Cause is a failure group's fingerprint.
	Cause string
	// Outcomes are those of runs, in lists of runs only; they replace Statuses there.
	Outcomes []string
	// Workers ran the job, or run it: whole names, or the part before a colon, which
	// is the host.
	Workers []string
	// Tags are those of PHP's jobs; one of them is enough.
	Tags []string
	// Since and Until bound the moment of enqueuing (waiting) or ending (others).
	Since, Until time.Time
	// Allow is asked for each job before Retry and RunNow change it; what it says
	// no to stays as it is. Lists and counts do not ask it. nil allows all.
	Allow func(Record) bool
}

// WithoutSilenced leaves out ended jobs of types, unless the filter asks for types,
// jobs or a text itself.
func (f Filter) WithoutSilenced(types []string) Filter {
	if len(f.Types)+len(f.UUIDs)+len(f.Tags) == 0 && f.Text == "" {
		f.Silenced = types
	}
	return f
}

// Page asks for a part of a list, newest first. Cursor, where it is set, wins
// over Offset and stays right while rows come and go.
type Page struct {
	Limit  int
	Offset int
	Cursor string
	// Uncounted leaves the total out, for who does not show it.
	Uncounted bool
}

// List is a part of a list. Total is −1 where counting would read the payloads of
// many jobs.
type List[T any] struct {
	Items []T
	Total int64
	Next  string // cursor of the next part, "" at the end
}

// Stats are the queue's figures at one moment, each as Figures
// defines it.
type Stats struct {
	Queued, Delayed, Foreign, Processing, Completed, Failed, Cancelled int64
	// SuccessRate is 0…1, and 0 where Ended is 0.
	SuccessRate float64
	// Ended counts the ends in the history that SuccessRate is made of.
	Ended int64
	// AverageDuration of completed runs in the history.
	AverageDuration time.Duration
	// Oldest is how long the longest waiting due job has waited.
	Oldest time.Duration
	// Queues are at most MaxQueues that have jobs, those that workers empty and the
	// largest ones first to be among them, and besides those that are paused or worked.
	Queues []QueueStats
	// MoreQueues counts the others. More are their jobs together, which the figures above
	// contain.
	MoreQueues int
	More       QueueStats
}

// QueueStats are the figures of one queue.
type QueueStats struct {
	Queue                       string
	Queued, Delayed, Processing int64
	Foreign                     int64 // PHP's own rows, counted approximately
	Oldest                      time.Duration
	Paused                      bool
	Workers                     int // live workers that listen to it
	PHPProcesses                int // of live programs, for PHP's jobs in it
}

// FailureGroup is failed jobs of one cause.
type FailureGroup struct {
	Cause     string // fingerprint: stable over numbers and ids in the message
	Type      string
	Message   string // of the newest
	Count     int64
	FirstSeen time.Time
	LastSeen  time.Time
}
