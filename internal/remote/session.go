package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/announce"
)

// Why a session lets go of a job that its program did not end.
var (
	errClosing    = errors.New("the service stops; the worker registers again with the next one")
	errLeft       = errors.New("the worker left")
	errSilent     = errors.New("the worker fell silent: it died, or was cut off, while it ran the job")
	errNotFetched = errors.New("the worker did not fetch the job")
)

// session is one registered program.
type session struct {
	hub          *Hub
	id, owner    string
	registration Registration
	worker       *jobs.Worker
	cancel       context.CancelFunc
	ctx          context.Context //nolint:containedctx // a session lasts longer than the call that starts it

	closing chan struct{} // close was called
	once    sync.Once

	mu        sync.Mutex
	heard     time.Time
	waiting   int // claims that wait: their program listens
	stop      bool
	why       error         // of close
	delay     time.Duration // of close, for jobs that were handed out
	line      []*run        // not handed out yet
	runs      map[string]*run
	ended     map[string]*run // whose handler has returned, until forgotten
	endings   []*run          // of ended, the oldest first
	unwritten map[int64]*run  // of ended, by row: whose end is not written
	arrived   chan struct{}   // closed when the line grows
}

// run is a job that the worker of a session runs.
type run struct {
	lease  string
	job    jobs.Job
	limit  time.Duration
	ctx    context.Context //nolint:containedctx // that of the handler, to log and report through
	said   chan Outcome    // by the program, once
	status string          // Running until the run is to stop
	handed bool
	asked  bool // an outcome was said
	took   bool // the handler returned by it
	done   bool // it said that the job is done
	heard  time.Time

	written chan struct{} // closed when the end is written, or refused
	err     error         // of it
}

func newSession(h *Hub, owner string, r Registration) *session {
	ctx, cancel := context.WithCancel(context.Background())
	return &session{hub: h, id: newName(), owner: owner, registration: r, ctx: ctx, cancel: cancel,
		closing: make(chan struct{}), heard: h.Worker.Now(), runs: map[string]*run{}, ended: map[string]*run{},
		unwritten: map[int64]*run{}, arrived: make(chan struct{})}
}

// queues are those of the session's types.
func (s *session) queues() (list []string) {
	for _, t := range s.registration.Types {
		if q := cmp.Or(t.Queue, s.hub.DefaultQueue); !slices.Contains(list, q) {
			list = append(list, q)
		}
	}
	return list
}

// open builds the worker.
func (s *session) open(ctx context.Context) error {
	types := jobs.NewRegistry()
	types.UseKeysOf(s.hub.Registry)
	for _, t := range s.registration.Types {
		entry, err := t.announced().Entry()
		if err != nil {
			return err
		}
		jobs.Handle(types, jobs.Kind[json.RawMessage]{Name: t.Name, Queue: t.Queue, Policy: entry.Policy},
			func(ctx context.Context, job jobs.Job, _ json.RawMessage) error {
				if err := entry.Check(job.Data); err != nil { // a row that SQL wrote
					return err
				}
				registered, _ := types.Lookup(job.Type)
				return s.hold(ctx, job, registered.Policy.RunTimeout(job.Timeout))
			})
	}
	source, workers, err := s.hub.Open(ctx, types)
	if err != nil {
		return fmt.Errorf("opening the queue for the worker: %w", err)
	}
	lease := s.registration.Lease
	c := s.hub.Worker
	c.Source, c.Workers, c.Registry = watchedSource{source, s}, watchedWorkers{workers, s}, types
	c.Queues, c.Slots, c.Prefetch = s.queues(), s.registration.Slots, 0
	c.MaxSlots = c.Slots // the program says what it takes
	// Of the lease in the table a third is left when a run loses it: the program hears of it in that time.
	c.Lease = max(c.Lease, 3*lease)
	c.StopTimeout = lease + 10*time.Second
	c.PollMax = time.Second
	c.Info.ID = jobs.PlainText(fmt.Sprintf("%s:%s", s.registration.Name, s.id[:8]), 191)
	c.Info.Host, c.Info.Version, c.Info.PID = s.registration.Name, cmp.Or(s.registration.Version, "remote"), 0
	s.worker, err = jobs.NewWorker(c)
	return err
}

// announce says that the types are run.
func (s *session) announce(ctx context.Context) error {
	list := make([]announce.Type, 0, len(s.registration.Types))
	for _, t := range s.registration.Types {
		list = append(list, t.announced())
	}
	return s.hub.Types.Announce(ctx, list...)
}

// announceEvery is how often a session says that its types are still run.
const announceEvery = time.Hour

// run works until the session is closed, or its program is silent.
func (s *session) run() {
	defer s.cancel()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if err := s.worker.Run(s.ctx); err != nil && !errors.Is(err, jobs.ErrStuck) {
			s.hub.Worker.Logger.Warn("worker of another program ended", "event", "remote.worker_ended", "worker",
				s.registration.Name, "error", err)
		}
	}()
	announced, tick := s.hub.Worker.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-worked:
			s.close(errClosing, 0) // nothing runs any more
			return
		case <-tick.C:
		}
		now := s.hub.Worker.Now()
		if s.silent() {
			s.close(errSilent, 0)
		}
		if now.Sub(announced) < announceEvery {
			continue
		}
		announced = now
		if err := s.announce(s.ctx); err != nil && s.ctx.Err() == nil {
			s.hub.Worker.Logger.Warn("types of a worker not announced; this is tried again", "event",
				"remote.announce_failed", "worker", s.registration.Name, "error", err)
		}
	}
}

// silent says that the program has said nothing for the length of its lease.
func (s *session) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting == 0 && s.hub.Worker.Now().Sub(s.heard) >= s.registration.Lease
}

// wait notes that a claim waits, or no longer does.
func (s *session) wait(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
	s.heard = s.hub.Worker.Now()
}

func (s *session) hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = s.hub.Worker.Now()
}

// close ends the session: nothing more is claimed, and what it holds is released,
// due again after delay where it was handed out.
func (s *session) close(why error, delay time.Duration) {
	s.once.Do(func() {
		s.mu.Lock()
		s.why, s.delay, s.stop = why, delay, true
		s.mu.Unlock()
		s.cancel()
		close(s.closing)
	})
}

func (s *session) orders() Orders {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Orders{Stop: s.stop}
}

// claim takes jobs out of the line, and waits for one.
func (s *session) claim(ctx context.Context, limit int, wait time.Duration) []Handed {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	s.wait(1)
	defer s.wait(-1)
	for {
		list, arrived := s.take(limit)
		if len(list) > 0 {
			return list
		}
		select {
		case <-arrived:
		case <-timer.C:
			return nil
		case <-s.closing:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *session) take(limit int) (list []Handed, arrived <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.line) > 0 && len(list) < limit {
		r := s.line[0]
		s.line = s.line[1:]
		if r.status != Running {
			continue
		}
		r.handed, r.heard = true, s.hub.Worker.Now()
		s.runs[r.lease] = r
		list = append(list, Handed{Lease: r.lease, Job: r.job, Timeout: r.limit})
	}
	return list, s.arrived
}

// beat notes that a job is still run, and returns its status.
func (s *session) beat(b Beat) string {
	s.mu.Lock()
	r, there := s.runs[b.Lease]
	if !there {
		s.mu.Unlock()
		return Lost
	}
	r.heard = s.hub.Worker.Now()
	status := r.status
	s.mu.Unlock()
	if b.Progress != nil {
		jobs.Report(r.ctx, b.Progress.Done, b.Progress.Total, jobs.PlainText(b.Progress.Note, 500))
	}
	for _, line := range b.Lines {
		jobs.Logf(r.ctx, "%s", jobs.PlainText(line, maxLine))
	}
	return status
}

// end passes an outcome to the handler and waits until it is written.
func (s *session) end(ctx context.Context, lease string, o Outcome) error {
	s.mu.Lock()
	r, there := s.runs[lease]
	if there && !r.asked {
		r.asked = true
		r.said <- o
	}
	if !there {
		r = s.ended[lease]
	}
	s.mu.Unlock()
	if r == nil {
		return ErrLost
	}
	select {
	case <-r.written:
	case <-ctx.Done():
		return ErrUnwritten
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err != nil || !r.took {
		return errors.Join(ErrLost, r.err)
	}
	return nil
}
