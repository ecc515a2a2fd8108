package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Processors are what a process computes with: few of them are enough for short jobs.
type Processors interface {
	// Few says that n jobs run at once, and are short.
	Few(n int)
	// Long says that a run takes longer than short jobs do, until done is called.
	Long() (done func())
}

// Config is what a worker needs. Zero values mean the defaults that Defaults
// names.
type Config struct {
	Source   Source
	Workers  WorkerRegistry // nil: the worker tells nobody that it lives
	Registry *Registry
	Logger   *slog.Logger
	// LogEnds says which ends of runs Logger gets. LogCompleted, where it is set,
	// gets those that completed instead, a batch at a time: a busy worker completes
	// ten thousands a second, which is more than a slog.Handler writes beside the
	// work. It must be quick and must not keep the slice.
	LogEnds      LogEnds
	LogCompleted func([]Settlement)

	Now    func() time.Time
	Random func() float64 // [0, 1); spreads polls

	Info   WorkerInfo // ID, Host, PID, Version; the rest is filled in
	Queues []string
	// Slots is how many jobs run at once; 1 runs them one after the other. Prefetch
	// is how many more may be claimed ahead when jobs are short. With one slot and
	// no prefetch, a job begins when the end of the one before it is written.
	Slots, Prefetch int
	// LeastAhead is how many of Prefetch are claimed ahead also where the process claims
	// few in a time, while runs are short; the constant LeastAhead where it is 0.
	LeastAhead int
	// MaxSlots is how many slots people may give the worker while it runs, never less
	// than Slots. 0 is the constant MaxSlots.
	MaxSlots int
	// Turn, where it is set, is asked before each run and waits until the process has a
	// slot for it: several workers share a process. done frees it. An error says that
	// ctx ended: the worker stops, and the job is released.
	Turn func(ctx context.Context) (done func(), err error)
	// Lease is how long a claim holds without a word from us; renewed every third.
	Lease time.Duration
	// PollMin and PollMax bound the wait between two empty polls.
	PollMin, PollMax time.Duration
	// Wake, where it is set, ends such a wait: a job was enqueued. Signalled makes
	// the worker read its orders at once: somebody paused, cancelled, stopped.
	Wake, Signalled <-chan struct{}
	// Grace is how long running jobs may go on after Run's context ended. Run
	// returns a second after it at the latest.
	Grace time.Duration
	// StopTimeout is how long a cancelled handler may take to return; less where a
	// stop ends before.
	StopTimeout time.Duration
	// BeatBusy and BeatIdle are the times between heartbeats: 2 s and 6 s, by
	// which an idle worker of two queues asks the database less than once a second.
	BeatBusy, BeatIdle time.Duration
	// MaxJobs and MaxTime stop the worker after so many starts or so long.
	MaxJobs int
	MaxTime time.Duration
	// Once stops after one job or one empty poll; StopWhenEmpty at the first
	// empty poll with nothing running.
	Once, StopWhenEmpty bool
	// MemoryLimit in bytes stops the worker softly above it; Memory measures.
	MemoryLimit int64
	Memory      func() int64
	// Processors learn how many jobs run at once, and of runs that take long; nil is
	// nobody.
	Processors Processors
	// DatabaseTrouble knows errors that are the database's, not the job's: the
	// attempt is released.
	DatabaseTrouble func(error) bool
	// Redact takes secrets out of errors and log lines before anybody keeps them;
	// nil leaves them as they are.
	Redact func(string) string
	// PHP are processes of which heartbeats say what they do; nil is none.
	PHP PHPProcesses
	// Setup runs once before the first claim, Refresh every RefreshEvery.
	Setup, Refresh []func(context.Context) error
	RefreshEvery   time.Duration
	// Ended is notified of every run after it was settled (metrics). It must be quick.
	Ended func(Settlement)
}

func (c *Config) defaults() {
	c.Slots = max(c.Slots, 1)
	if c.MaxSlots <= 0 {
		c.MaxSlots = MaxSlots
	}
	if len(c.Queues) == 0 {
		c.Queues = []string{"default"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = func() float64 { return 0.5 }
	}
	if c.Ended == nil {
		c.Ended = func(Settlement) {}
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	if c.DatabaseTrouble == nil {
		c.DatabaseTrouble = func(error) bool { return false }
	}
	for field, fallback := range map[*time.Duration]time.Duration{
		&c.Lease: 90 * time.Second, &c.PollMin: 500 * time.Millisecond, &c.PollMax: 3 * time.Second,
		&c.Grace: 30 * time.Second, &c.StopTimeout: 30 * time.Second,
		&c.BeatBusy: 2 * time.Second, &c.BeatIdle: 6 * time.Second, &c.RefreshEvery: 300 * time.Second,
	} {
		if *field <= 0 {
			*field = fallback
		}
	}
}

// Worker claims jobs, runs their handlers and settles them, until its context
// ends.
type Worker struct {
	c        Config
	inFlight *inFlightJobs

	ended     chan *inFlightJob // run, waiting to be settled
	startSlot func()            // begins one more slot; Run sets it
	slotFreed chan struct{}     // a slot or a place of the prefetch came free

	abort   chan struct{} // Abort was called
	aborted sync.Once

	claims  sync.Mutex // one claim at a time is asked for: each counts the free space
	leases  sync.Mutex // renewing and settling exclude each other: both change leases
	trouble trouble

	started        atomic.Int64
	done, failed   atomic.Int64
	status         atomic.Value // string
	paused         atomic.Value // []string
	stop           atomic.Value // stopOrder
	meanNanos      atomic.Int64 // moving average of a run's length
	pace           pace
	releasedAt     atomic.Pointer[time.Time] // when a job was last released unstarted; nil: never
	stuck          atomic.Int64
	unwritten      atomic.Bool // the last write of ends failed: nothing is claimed until one succeeds
	claiming       atomic.Bool // false from the moment on when nothing more is claimed
	stopRequested  chan struct{}
	requestingStop sync.Once
}

type stopOrder struct {
	why string
	err error
}

// notify sends on a channel of one place without waiting.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// LogEnds says which ends of runs a worker logs.
type LogEnds string

// stopPhases are the ends of a stop's steps, as contexts: starts ends when no run
// begins any more, claims when no
// claim is awaited any more, grace when running handlers are cancelled,
// returning when handlers that still run are left behind, life when nothing
// more is written.
type stopPhases struct {
	starts, claims, grace, returning, runCtx              context.Context
	endStarts, endClaims, endGrace, endReturning, endLife context.CancelFunc
}

// requestStop makes the worker finish what it runs and end.
func (w *Worker) requestStop(why string, err error) {
	w.requestingStop.Do(func() {
		w.stop.Store(stopOrder{why, err})
		close(w.stopRequested)
	})
}

// The values of LogEnds; "" is LogAll.
const (
	LogAll    LogEnds = "all"    // one line per run
	LogFailed LogEnds = "failed" // those that failed
	LogNone   LogEnds = "none"
)

// Why a worker ended by itself. A stop by signal, by order or because there is
// nothing left to do is no error.
var (
	// ErrMemory says that the process grew over its limit and stopped softly.
	ErrMemory = errors.New("the process uses more memory than it may; it stopped after its running jobs")
	// ErrStuck says that a handler ignored its cancelled context. The worker
	// drained its other slots and must exit, as the handler still runs.
	ErrStuck = errors.New("a handler did not stop when it was asked to; the process must be restarted")
)
