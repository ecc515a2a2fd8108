package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
)

// Hub has the sessions of one process. It is safe for concurrent use.
type Hub struct {
	// Open opens the queue for the types of one session.
	Open func(ctx context.Context, types *jobs.Registry) (jobs.Source, jobs.WorkerRegistry, error)
	// Types announces what sessions run; Registry has the types of the service, and
	// hears of those of sessions.
	Types    *announce.Store
	Registry *jobs.Registry
	// Worker is what the workers of all sessions have: logger, clock, outage, lease.
	Worker jobs.Config
	// DefaultQueue is the queue of types that name none.
	DefaultQueue string

	mu       sync.Mutex
	sessions map[string]*session
	closed   bool
	running  sync.WaitGroup
}

// ErrBusy says that this process has as many sessions as it may.
var ErrBusy = fmt.Errorf("%w: %d programs are registered here already", jobs.ErrConflict, maxSessions)

// Registered is what a program learns when it registers.
type Registered struct {
	ID     string // of the session: every other call names it
	Lease  time.Duration
	Queues []string
}

// Register starts a session. owner is who may use it.
func (h *Hub) Register(ctx context.Context, owner string, r Registration) (Registered, error) {
	ours := func(name string) bool { _, ours := h.Registry.Lookup(name); return ours }
	if err := r.check(ours); err != nil {
		return Registered{}, err
	}
	s := newSession(h, owner, r)
	if err := s.open(ctx); err != nil {
		return Registered{}, err
	}
	if err := s.announce(ctx); err != nil {
		return Registered{}, err
	}
	if err := h.Types.Refresh(ctx, h.Registry); err != nil {
		return Registered{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.sessions) >= maxSessions {
		return Registered{}, ErrBusy
	}
	if h.sessions == nil {
		h.sessions = map[string]*session{}
	}
	h.sessions[s.id] = s
	h.running.Go(func() {
		s.run()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.sessions, s.id)
	})
	return Registered{ID: s.id, Lease: r.Lease, Queues: s.queues()}, nil
}

// find is a session that owner started.
func (h *Hub) find(owner, id string) (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, there := h.sessions[id]
	if !there || s.owner != owner {
		return nil, fmt.Errorf("the worker %q is not registered here; register again: %w", jobs.PlainText(id, 40),
			jobs.ErrNotFound)
	}
	s.hear()
	return s, nil
}

// Run keeps sessions until ctx ends, and releases what they hold then.
func (h *Hub) Run(ctx context.Context) error {
	<-ctx.Done()
	h.mu.Lock()
	h.closed = true
	all := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s)
	}
	h.mu.Unlock()
	for _, s := range all {
		s.close(errClosing, s.registration.Lease)
	}
	h.running.Wait()
	return nil
}

// Leave ends a session whose program has stopped its jobs: they are due at once.
func (h *Hub) Leave(owner, id string) error {
	s, err := h.find(owner, id)
	if err != nil {
		return err
	}
	s.close(errLeft, 0)
	return nil
}

// Handed is a job that a program may run now.
type Handed struct {
	Lease string // names this run in every other call
	Job   jobs.Job
	// Timeout of the run.
	Timeout time.Duration
}

// Orders are what a program hears with each answer.
type Orders struct {
	// Stop says that it should finish what it runs and leave.
	Stop bool
}

// maxWait bounds how long Claim waits for a job.
const maxWait = 20 * time.Second

// Claim hands up to limit jobs out. Where none is due it waits, at most as long as
// wait.
func (h *Hub) Claim(ctx context.Context, owner, id string, limit int, wait time.Duration) ([]Handed, Orders, error) {
	s, err := h.find(owner, id)
	if err != nil {
		return nil, Orders{}, err
	}
	if limit < 1 || limit > maxSlots || wait < 0 || wait > maxWait {
		return nil, Orders{}, invalid("limit is from 1 to %d, wait from 0 to %d seconds", maxSlots,
			int(maxWait.Seconds()))
	}
	list := s.claim(ctx, limit, wait)
	return list, s.orders(), nil
}

// Beat says that jobs are still run, how far they are, and what they log.
type Beat struct {
	Lease    string
	Progress *jobs.Progress
	Lines    []string
}

// Status is what became of a job meanwhile.
type Status struct {
	Lease string
	// Status is running, cancelled (a person did it), timeout, or lost: another
	// worker has it, or will have it. Of the last three the program stops the job,
	// and says so by End for cancelled and timeout.
	Status string
}

// The statuses of a job that a program runs.
const (
	Running   = "running"
	Cancelled = "cancelled"
	TimedOut  = "timeout"
	Lost      = "lost"
)

// The bounds of one Beat.
const (
	maxLines = 500
	maxLine  = 2000
)

// Beat says which jobs a program still runs. One that it does not name for the
// length of the lease is lost to it.
func (h *Hub) Beat(owner, id string, beats []Beat) ([]Status, Orders, error) {
	s, err := h.find(owner, id)
	if err != nil {
		return nil, Orders{}, err
	}
	list := make([]Status, 0, len(beats))
	for _, b := range beats {
		if len(b.Lines) > maxLines {
			return nil, Orders{}, invalid("a heartbeat has at most %d log lines of a job", maxLines)
		}
		list = append(list, Status{b.Lease, s.beat(b)})
	}
	return list, s.orders(), nil
}

// Outcome is how a program says that a run ended: without Error it completed,
// with Result; with Released it is due again after Delay and the attempt does not
// count; otherwise it failed with Error and is repeated where Permanent is not set
// and attempts are left.
type Outcome struct {
	Result    []byte
	Error     string
	Permanent bool
	Released  bool
	Delay     time.Duration
}

// ErrLost says that a run is no longer the program's: it was silent for too long,
// the run took too long, or the job ended otherwise.
var ErrLost = fmt.Errorf("%w: the job is no longer this worker's, and its end was not written", jobs.ErrConflict)

// ErrUnwritten says that the end could not be written yet: say it again.
var ErrUnwritten = errors.New("the end of the job is not written yet")

// End ends a run. Saying it twice is harmless.
func (h *Hub) End(ctx context.Context, owner, id, lease string, o Outcome) error {
	s, err := h.find(owner, id)
	if err != nil {
		return err
	}
	if o.Delay < 0 || o.Delay > maxTimeout {
		return invalid("delay is from 0 seconds to a day")
	}
	return s.end(ctx, lease, o)
}

// newName is a random name that nobody guesses.
func newName() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	return hex.EncodeToString(random)
}
