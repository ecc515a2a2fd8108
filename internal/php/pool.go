package php

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Config says which processes a Pool keeps and how. Zero fields mean the
// defaults that are named.
type Config struct {
	Source Source
	Queue  string
	// Command starts one worker: php, artisan, queue:work and its options. Dir is
	// where, Connection the queue connection's name, which the package asks for.
	Command    []string
	Dir        string
	Connection string
	Processes  int // 1
	// MaxProcesses is how many a Balancer may make of them; at least Processes.
	MaxProcesses int
	// Timeout is that of --timeout, for jobs that name none; 0 is none.
	Timeout time.Duration
	// Lease is how long a claim holds without renewal: 90 s.
	Lease time.Duration
	// Poll is the wait between two looks at an empty queue: 50 ms.
	Poll time.Duration
	// Grace is how long running jobs may go on after the context ends: 30 s.
	Grace time.Duration
	// MaxCrashes is after how many crashes a job is failed instead of run: 3.
	MaxCrashes int
	// StateDir is a folder of this host for what a killed process had claimed ahead
	// (journal.go); "" is none.
	StateDir string
	// Worker names this pool in the history.
	Worker string
	Now    func() time.Time
	Logger *slog.Logger
	// Redact takes secrets out of what jobs print and throw; nil leaves all.
	Redact func(string) string
	// Wake receives when jobs may have been enqueued; nil is never.
	Wake <-chan struct{}
	// Release says which code the site has: when it changes, the processes are replaced.
	// nil: it never changes.
	Release func() string
	// Ended is called for each end that was written.
	Ended func(End)
}

func (c *Config) defaults() {
	c.Processes = cmp.Or(c.Processes, 1)
	c.Lease, c.Poll = cmp.Or(c.Lease, 90*time.Second), cmp.Or(c.Poll, 50*time.Millisecond)
	c.Grace, c.MaxCrashes = cmp.Or(c.Grace, 30*time.Second), cmp.Or(c.MaxCrashes, 3)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	if c.Ended == nil {
		c.Ended = func(End) {}
	}
}

// Pool keeps the PHP processes of one queue.
type Pool struct {
	c       Config
	claims  claims        // what is claimed and not handed out
	ready   chan struct{} // to a process that waits: there may be a job
	asked   chan struct{} // a process waits for a job, or few are left
	back    chan Job      // what a process has not read
	ends    chan ending   // to the settler
	wanting atomic.Int64  // processes that ask
	busy    atomic.Int64  // processes that run a job
	average atomic.Int64  // how long a job takes, in ns

	size    atomic.Int64  // how many processes there are to be
	kept    atomic.Int64  // how many are kept
	drained atomic.Bool   // the last look found fewer jobs than were wanted
	resized chan struct{} // size has changed
	retire  chan struct{} // to a process that asks, and is one too many

	journal *journal

	leases   sync.Mutex // held while leases are written: an end must name the one that is in the row
	mu       sync.Mutex // never held while the Source is asked
	held     map[int64]holding
	alive    map[*process]struct{}
	outdated chan struct{} // closed when the processes of now have old code
}

// ending is an end on its way to the Source, and how the process that waits for it
// hears that it is written.
type ending struct {
	End
	written func(id int64)
}

// New makes a pool; Run starts its processes.
func New(c Config) (*Pool, error) {
	switch {
	case !supported:
		return nil, errors.New("PHP's jobs cannot be run on this operating system")
	case c.Source == nil || c.Now == nil || c.Queue == "" || len(c.Command) == 0 || c.Connection == "":
		return nil, errors.New("a pool of PHP processes needs a source, a clock, a queue, a command and a connection")
	}
	c.defaults()
	p := &Pool{c: c, ready: make(chan struct{}), asked: make(chan struct{}, 1), back: make(chan Job),
		ends: make(chan ending, 1024), held: map[int64]holding{}, resized: make(chan struct{}, 1),
		retire: make(chan struct{}), alive: map[*process]struct{}{}, outdated: make(chan struct{})}
	p.size.Store(int64(c.Processes))
	return p, nil
}

// note logs trouble with the journal.
func (p *Pool) note(err error) {
	if err != nil {
		p.c.Logger.Warn("the journal of jobs claimed ahead does not work; a killed process costs them an attempt",
			"event", "php.journal_failed", "queue", p.c.Queue, "error", err)
	}
}

// wake says that something has changed, if nobody has said so yet.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wait waits for d; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
