package jobs

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// ClaimRequest says which jobs a worker can run now.
type ClaimRequest struct {
	// Worker claims; its id is written where the table has space for it.
	Worker string
	// Queues in the order in which they are emptied.
	Queues []string
	// Limit is how many jobs are wanted at most.
	Limit int
	// Ahead is how many of them have no free slot to wait for. A job that may be
	// started only once more is not among these.
	Ahead int
	// AheadBytes is how many bytes of payload those have together at most.
	AheadBytes int64
	// Soon is how many more the worker expects to claim within a quarter of a second.
	// Rows are read for them, and no other process gets these in that time.
	Soon int
	// Lease is how long the claim holds without renewal.
	Lease time.Duration
	// Whole asks for a look at every row of the queues before the claim says
	// that none is due: for workers that then end, and do not look again.
	Whole bool
}

// ErrUnseen is the error of a claim that took nothing and ended at its bounds
// before it had seen all rows, as many of them are others': claim again at once.
var ErrUnseen = errors.New("the claim has not seen all rows yet")

// Source is where a worker gets jobs from and settles them. The store
// implements it. Errors of the database come back as they are; ErrLeaseLost is
// said per job.
type Source interface {
	// Claim takes up to Limit due jobs of types that the store's registry
	// knows. The claim is committed when it returns. No job is an empty
	// result, not an error; ErrUnseen says that there was too much to look at.
	Claim(ctx context.Context, r ClaimRequest) ([]Claimed, error)
	// Renew extends leases by length from the database's now and returns them
	// renewed, in the same order; a lost lease comes back as the zero Lease.
	Renew(ctx context.Context, leases []Lease, length time.Duration) ([]Lease, error)
	// Settle writes the ends of runs: one error a settlement, nil, ErrLeaseLost
	// or why this end will never be taken. The second result is set when it is
	// not known what was written: settle the same again.
	Settle(ctx context.Context, ends []Settlement) ([]error, error)
}

// SettleClaimer is a Source that can claim the next jobs in the transaction that ends
// the last ones: a worker with one slot then waits for the disk once.
type SettleClaimer interface {
	// SettleAndClaim is Settle. Where the source knows without a look which jobs
	// come next, those are claimed along; no job does not mean that none is due.
	SettleAndClaim(ctx context.Context, ends []Settlement, r ClaimRequest) (results []error, next []Claimed, err error)
}

// WorkerInfo is what a worker says about itself.
type WorkerInfo struct {
	ID      string // host:pid:random
	Host    string
	PID     int
	Version string
	Queues  []string
	Types   []string
	Slots   int // at present
	// ConfiguredSlots are those that it has while people order no others, MaxSlots
	// the most that it takes; 0: it runs no jobs of types.
	ConfiguredSlots, MaxSlots int
	StartedAt                 time.Time
	MemoryBytes               int64
	Done                      int64 // runs that ended since the start
	Failed                    int64
	Status                    string // "running", "stopping"
	Running                   []RunningJob
	PHP                       []PHPProcess // that run PHP's jobs beside its slots
}

// WantedSlots is how many slots the worker is to have when all workers, or this one by
// its id, are given so many; 0 is that they are not.
func (w WorkerInfo) WantedSlots(all, own int) int {
	ordered := cmp.Or(own, all, w.ConfiguredSlots)
	return min(ordered, w.MaxSlots)
}

// RunsTypes says whether it runs jobs of types: a program that only keeps PHP
// processes does not.
func (w WorkerInfo) RunsTypes() bool { return w.Slots > 0 }

// RunningJob is a job that a worker holds at the moment of a heartbeat.
type RunningJob struct {
	ID       int64     `json:"id"`
	UUID     string    `json:"uuid"`
	Type     string    `json:"type"`
	Queue    string    `json:"queue"`
	Attempt  int       `json:"attempt"`
	Since    time.Time `json:"since"`
	Progress *Progress `json:"progress,omitempty"`
	// Lines are log lines that came since the last heartbeat; they are stored
	// apart and not kept in the worker's own row.
	Lines []LogLine `json:"-"`
}

// PHPProcess is a PHP process that runs PHP's jobs, at the moment of a heartbeat.
type PHPProcess struct {
	Queue       string    `json:"queue"`
	PID         int       `json:"pid"`
	StartedAt   time.Time `json:"started_at"`
	MemoryBytes int64     `json:"memory_bytes"` // 0: not known
	Done        int64     `json:"done"`         // runs that ended since the start
	// Job is what it runs, nil while it waits for a job. Deadline is the job's time-out;
	// zero is that it has none.
	Job      *RunningJob `json:"job,omitempty"`
	Deadline time.Time   `json:"deadline,omitzero"`
}

// PHPProcesses are the PHP processes beside a worker.
type PHPProcesses interface {
	// Processes says what they do. It takes the log lines that their jobs printed
	// since the last call, and returns at once.
	Processes() []PHPProcess
	// Return puts lines back that could not be stored.
	Return(list []PHPProcess)
}

// ControlSignals are what people told the workers, read at each heartbeat.
type ControlSignals struct {
	// Stop says that this worker should finish what it runs and exit.
	Stop bool
	// RestartedAt is when all workers were last told to restart: one that
	// started earlier stops.
	RestartedAt time.Time
	// Paused queues are not claimed from.
	Paused []string
	// Slots is how many jobs this worker is to run at once; 0 is as many as it was
	// configured with.
	Slots int
	// Cancelled are the UUIDs of this worker's running jobs that a person
	// cancelled.
	Cancelled []string
}

// WorkerRegistry is where workers say that they live, and read their orders.
type WorkerRegistry interface {
	Heartbeat(ctx context.Context, w WorkerInfo) (ControlSignals, error)
	Deregister(ctx context.Context, workerID string) error
}
