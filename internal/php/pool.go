package php

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
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
	jobs    chan *Job     // from the claimer to processes that ask
	asked   chan struct{} // a process began to ask
	back    chan Job      // what a process has not read
	ends    chan ending   // to the settler
	wanting atomic.Int64  // processes that ask
	busy    atomic.Int64  // processes that run a job
	average atomic.Int64  // how long a job takes, in ns

	journal *journal

	leases sync.Mutex // held while leases are written: an end must name the one that is in the row
	mu     sync.Mutex // never held while the Source is asked
	held   map[int64]jobs.Lease
}

// ending is an end on its way to the Source, and the process that waits to hear
// that it is written.
type ending struct {
	End
	by *process
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
	return &Pool{c: c, jobs: make(chan *Job), asked: make(chan struct{}, 1), back: make(chan Job),
		ends: make(chan ending, 1024),
		held: map[int64]jobs.Lease{}}, nil
}

// Run keeps the processes until ctx ends, lets their jobs end (at most for
// Config.Grace) and returns when all is written or released.
func (p *Pool) Run(ctx context.Context) error {
	p.note(p.recover(ctx))
	var err error
	if p.journal, err = openJournal(p.c.StateDir, p.c.Queue); err != nil {
		p.note(err)
		p.journal = new(journal)
	}
	var processes, claimer, settler, renewer sync.WaitGroup
	for range p.c.Processes {
		processes.Go(func() { p.keep(ctx) })
	}
	// The claimer outlives the processes, as it releases what they have not read.
	stopClaimer := make(chan struct{})
	claimer.Go(func() { p.claim(ctx, stopClaimer) })
	settler.Go(func() { p.settle(ctx) })
	renewals, stopRenewals := context.WithCancel(context.WithoutCancel(ctx))
	renewer.Go(func() { p.renew(renewals) })
	processes.Wait()
	close(stopClaimer)
	claimer.Wait()
	close(p.ends)
	settler.Wait()
	stopRenewals()
	renewer.Wait()
	return p.journal.remove()
}

// hold notes leases that must be renewed.
func (p *Pool) hold(list []Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		p.held[list[i].Lease.ID] = list[i].Lease
	}
}

// leaseOf is the lease of a row as it was last written.
func (p *Pool) leaseOf(id int64) jobs.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[id]
}

// drop forgets leases that are settled or released.
func (p *Pool) drop(ids ...int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.held, id)
	}
}

// note logs trouble with the journal.
func (p *Pool) note(err error) {
	if err != nil {
		p.c.Logger.Warn("the journal of jobs claimed ahead does not work; a killed process costs them an attempt",
			"event", "php.journal_failed", "queue", p.c.Queue, "error", err)
	}
}

// renew keeps the leases of everything that is held here.
func (p *Pool) renew(ctx context.Context) {
	ticker := time.NewTicker(p.c.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.renewOnce(ctx); err != nil && ctx.Err() == nil {
			p.c.Logger.Warn("leases of PHP's jobs not renewed", "event", "php.renew_failed", "queue", p.c.Queue,
				"error", err)
		}
	}
}

func (p *Pool) renewOnce(ctx context.Context) error {
	p.leases.Lock()
	defer p.leases.Unlock()
	p.mu.Lock()
	list := slices.Collect(maps.Values(p.held))
	p.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	renewed, err := p.c.Source.Renew(call, list, p.c.Lease)
	if err != nil {
		return fmt.Errorf("renewing %d leases: %w", len(list), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range renewed {
		if l.ID == 0 {
			p.c.Logger.Warn("lease of a PHP job lost: another worker has it, or a person removed it", "event",
				"php.lease_lost",
				"queue", p.c.Queue, "id", list[i].ID)
			continue // its end will be refused
		}
		if _, still := p.held[l.ID]; still {
			p.held[l.ID] = l
		}
	}
	p.note(p.journal.renewed(renewed))
	return nil
}

// callTimeout bounds one call of the Source.
const callTimeout = 30 * time.Second

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
