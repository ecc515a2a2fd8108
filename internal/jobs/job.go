package jobs

import (
	"encoding/json"
	"time"
)

// Job is one row of the queue, as one run of it sees it. It is a copy: the
// worker never changes it after the handler was started.
type Job struct {
	// ID is the row's number in the jobs table. A job that PHP's queue:retry
	// brings back gets a new one; UUID stays.
	ID int64
	// UUID names the job over its whole life, over retries, in failed_jobs and
	// after a revival. Rows that carry none get one derived from the row.
	UUID  string
	Type  string
	Queue string
	// Data is what the enqueuer wrote for the handler: the object under "data"
	// of an enveloped payload, or a flat payload itself. Never empty: "{}" at least.
	Data json.RawMessage
	// Metadata is the envelope's "metadata" (who asked, from where), or "{}".
	Metadata json.RawMessage
	// Attempt counts starts, this one included: the first run is 1.
	Attempt int
	// MaxAttempts is the type's limit, or the row's own where that is lower.
	MaxAttempts int
	// Priority orders jobs inside a queue, higher first. Stock tables have none.
	Priority int
	// Timeout is the row's own limit on a run, which counts where it is shorter
	// than the type's; 0 is none.
	Timeout time.Duration
	// RunAt is when the job fell due, EnqueuedAt when its row was made, both by
	// the database's clock.
	RunAt, EnqueuedAt time.Time
}

// Last says whether this attempt is the last that the job may have.
func (j Job) Last() bool { return j.Attempt >= j.MaxAttempts }

// Lease is the right to end or extend one run. Its fields mean something to
// the store only; a worker carries it from Claim to Settle.
type Lease struct {
	ID int64
	// Token is a fresh random 128-bit name of this claim, where the table has
	// space for it (the extended layout).
	Token string
	// Attempt and ReservedAt (Unix seconds, the database's clock) are the lease
	// where the table has no space for a token (the stock layout).
	Attempt    int
	ReservedAt int64
}

// Claimed is a job together with the lease on it.
type Claimed struct {
	Job   Job
	Lease Lease
	// Payload is the row's payload as it stands in the table, byte for byte.
	Payload []byte
	// Fault is set when the row can never run: its payload cannot be decoded,
	// or it was started more often than it may be. It fails permanently, not run.
	Fault error
	// Rescued says that an earlier run of the job ended without a result: its
	// worker died or was cut off, and its lease ran out.
	Rescued bool
	// Duplicates are equal waiting jobs that this run stands for (Policy.Coalesce).
	// Whatever ends this run ends them too, except that a retry or a release
	// releases them as they were.
	Duplicates []Lease
}

// Outcome is how a run ended.
type Outcome int

// The five ends of a run.
const (
	Completed Outcome = iota + 1 // done: the row goes, a run is recorded
	Retried                      // failed, attempts are left: due again after Delay
	Released                     // released as if it had not started: the attempt is not charged
	Failed                       // failed for good: moved to failed_jobs
	Cancelled                    // a person cancelled it while it ran: the row goes
)

// String is the word that tables, logs and pages use.
func (v Outcome) String() string {
	switch v {
	case Completed:
		return "completed"
	case Retried:
		return "retried"
	case Released:
		return "released"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// Settlement is the end of one run, for the store to write. All of it is
// written in one transaction, or none of it.
type Settlement struct {
	Claimed Claimed
	Outcome Outcome
	// Delay until the job is due again (Retried, Released), from the
	// database's now.
	Delay time.Duration
	// WaitsFor names the dependency without which a released job cannot run; it
	// is due when that is back. "" is none.
	WaitsFor string
	// Unstarted says that a released job was claimed ahead and never begun: its
	// release leaves no line in the history.
	Unstarted bool
	// Error says why, for a person: the message first, details and stack below.
	Error string
	// Result is what the handler left with SetResult; nil when nothing.
	Result json.RawMessage
	// FollowUps are enqueued in the transaction that completes the job.
	FollowUps []Spec
	// Lines are log lines that no heartbeat has stored yet.
	Lines []LogLine
	// Worker that ran it, and how long the run and the wait before it took.
	Worker         string
	Started        time.Time
	Duration, Wait time.Duration
}
