package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
	"github.com/cmsjobs/cmsjobs/internal/memory"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/remote"
)

// WorkerOptions are a worker's words on the command line.
type WorkerOptions struct {
	Once, StopWhenEmpty bool
	Alone               bool          // the process has no other part
	MaxTime             time.Duration // instead of queue.max_time; 0: the setting holds
	Ended               func(jobs.Settlement)
}

// Worker builds a worker; close ends what listens for its wake-ups.
func (r *Services) Worker(o WorkerOptions) (w *jobs.Worker, closeIt func(), err error) {
	w, _, closeIt, err = r.worker(o)
	return w, closeIt, err
}

// worker is Worker with a call that wakes the workers of this host, this one without a
// datagram.
func (r *Services) worker(o WorkerOptions) (w *jobs.Worker, call func(queue string), closeIt func(), err error) {
	q := r.Config.Queue
	c := jobs.Config{
		Source: r.Store, Workers: r.Store, Registry: r.Registry, Logger: r.Log, Now: r.Now, Random: rand.Float64,
		Info: r.workerInfo(q.WorkerID), Queues: r.queues(), Slots: q.Concurrency, Prefetch: q.Prefetch,
		LeastAhead: r.Store.LeastAhead(), Lease: q.Lease,
		PollMin: q.PollFirst, PollMax: q.Poll, Grace: q.Grace, MaxJobs: q.MaxJobs,
		MaxTime: cmp.Or(o.MaxTime, q.MaxTime),
		Once:    o.Once, StopWhenEmpty: o.StopWhenEmpty, MemoryLimit: int64(q.Memory), Memory: r.resident,
		DatabaseTrouble: database.Outage, Redact: redact.Text,
		RefreshEvery: q.Refresh, Ended: o.Ended, LogEnds: jobs.LogEnds(r.Config.Log.Jobs), LogCompleted: r.completedLog,
	}
	if o.Alone && !database.Of(r.DB).OneWriter { // SQLite itself works in this process
		c.Processors = r.processors
	}
	if !o.Once {
		c.Setup = append(c.Setup, r.warm)
	}
	if r.pools != nil {
		c.PHP, c.Info = r.pools, r.poolsInfo
	}
	if r.Shared != nil {
		c.Turn, c.MaxSlots = r.Shared.Turn, r.Shared.Slots
	}
	if r.writes != nil {
		c.Source, c.Workers = writing{r.Store, r.writes}, writing{r.Store, r.writes}
	}
	if r.Handlers.Backup != nil {
		c.Workers = pausing{c.Workers, r.Handlers.Backup.Half, c.Queues}
	}
	call, closeIt = r.wakeWorkers, func() {}
	ears, err := wake.Listen(r.WakeDir, r.Store.NoteRow, c.Queues...)
	if err != nil {
		r.Log.Info("no wake-ups on this host; jobs start at the next poll", "event", "wakeup.unavailable", "error", err)
	} else {
		c.Wake, c.Signalled = ears.Jobs(), ears.Orders()
		call = func(queue string) { ears.Call(wake.Jobs, queue) }
		closeIt = func() {
			if err := ears.Close(); err != nil {
				r.Log.Debug("closing the wake-up socket", "event", "wakeup.close_failed", "error", err)
			}
		}
	}
	if w, err = jobs.NewWorker(c); err != nil {
		closeIt()
		return nil, nil, nil, err
	}
	return w, call, closeIt, nil
}

// A worker that works off jobs writes ends and reads what comes next at the same time. Where
// many processes start at once, a new connection may take seconds; the jobs that the process
// holds then would wait for it.
const warmConnections = 2

// warm opens the connections that a worker needs, before it claims its first job.
func (r *Services) warm(ctx context.Context) error {
	database.Warm(ctx, r.DB, warmConnections)
	return nil
}

// wakeWorkers tells the workers of this host that a queue has jobs; "" is any queue.
func (r *Services) wakeWorkers(queue string) { wake.Call(r.WakeDir, wake.Jobs, queue) }

// remoteHub lets other programs run jobs of their types.
func (r *Services) remoteHub() *remote.Hub {
	q := r.Config.Queue
	return &remote.Hub{Types: r.Types, Registry: r.Registry, DefaultQueue: q.Default,
		Worker: jobs.Config{Logger: r.Log, Now: r.Now, Random: rand.Float64, Lease: q.Lease, PollMin: q.PollFirst,
			DatabaseTrouble: database.Outage, Redact: redact.Text, LogEnds: jobs.LogEnds(r.Config.Log.Jobs),
			LogCompleted: r.completedLog, Ended: func(end jobs.Settlement) { r.Metrics.Ended(end); r.TraceRun(end) }},
		Open: func(ctx context.Context, types *jobs.Registry) (jobs.Source, jobs.WorkerRegistry, error) {
			o := r.tableOptions
			o.Registry = types
			store, err := queue.Open(ctx, r.DB, o)
			if err != nil || r.Handlers.Backup == nil {
				return store, store, err
			}
			var queues []string
			for _, jobType := range types.Types() {
				entry, _ := types.Lookup(jobType)
				queues = append(queues, cmp.Or(entry.Queue, q.Default))
			}
			return store, pausing{store, r.Handlers.Backup.Half, queues}, nil
		}}
}

// followTypes keeps the types of other programs known.
func (r *Services) followTypes(ctx context.Context) error {
	r.Types.Follow(ctx, r.Registry, func(err error) {
		r.Log.Warn("types of other programs not read; this is tried again", "event", "types.read_failed", "error", err)
	})
	return nil
}

// queues are those of the configuration, and those that the configuration
// moved types to.
func (r *Services) queues() []string {
	names := slices.Clone(r.Config.Queue.Queues)
	for _, jobType := range r.Registry.Types() {
		entry, _ := r.Registry.Lookup(jobType)
		if q := cmp.Or(r.Config.Types[jobType].Queue, entry.Queue); q != "" && !slices.Contains(names, q) &&
			!r.chosenQueues() {
			names = append(names, q)
		}
	}
	return names
}

// chosenQueues says that the command line named the queues: then it means them.
func (r *Services) chosenQueues() bool {
	return slices.ContainsFunc(r.Config.Values(), func(v config.Value) bool {
		return v.Path == "queue.queues" && strings.HasPrefix(v.Origin, "flag")
	})
}

// workerInfo names this process: host:pid:random, as a host may run several
// workers and a pid comes again.
func (r *Services) workerInfo(prefix string) jobs.WorkerInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return jobs.WorkerInfo{ID: fmt.Sprintf("%s:%d:%06x", cmp.Or(prefix, host), os.Getpid(), rand.Uint32N(1<<24)),
		Host: host, PID: os.Getpid(), Version: r.Version}
}

// writing is the store of a worker whose writes are remembered.
type writing struct {
	*queue.Store
	w *conditions.Writes
}

func (s writing) note(ctx context.Context, jobType string, err error) {
	if err == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) { // else the worker stops
		s.w.Note(jobType, err)
	}
}

// Claim implements jobs.Source. A claim that takes nothing writes nothing.
func (s writing) Claim(ctx context.Context, q jobs.ClaimRequest) ([]jobs.Claimed, error) {
	list, err := s.Store.Claim(ctx, q)
	if err != nil || len(list) > 0 {
		s.note(ctx, "claims", err)
	}
	return list, err
}

// Renew implements jobs.Source.
func (s writing) Renew(ctx context.Context, leases []jobs.Lease, length time.Duration) ([]jobs.Lease, error) {
	renewed, err := s.Store.Renew(ctx, leases, length)
	s.note(ctx, "renewals of leases", err)
	return renewed, err
}

// Settle implements jobs.Source.
func (s writing) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	results, err := s.Store.Settle(ctx, ends)
	s.note(ctx, "outcomes of runs", err)
	return results, err
}

// SettleAndClaim implements jobs.SettleClaimer.
func (s writing) SettleAndClaim(ctx context.Context, ends []jobs.Settlement, q jobs.ClaimRequest) (results []error,
	next []jobs.Claimed, err error) {
	results, next, err = s.Store.SettleAndClaim(ctx, ends, q)
	s.note(ctx, "outcomes of runs", err)
	return results, next, err
}

// Heartbeat implements jobs.WorkerRegistry.
func (s writing) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	o, err := s.Store.Heartbeat(ctx, w)
	s.note(ctx, "the worker's heartbeat", err)
	return o, err
}

// pausing keeps a worker from new jobs while a restore has exchanged the tables of the
// site, and files or views did not follow yet.
type pausing struct {
	jobs.WorkerRegistry
	half   func(context.Context) (bool, error)
	queues []string
}

// Heartbeat implements jobs.WorkerRegistry.
func (p pausing) Heartbeat(ctx context.Context, w jobs.WorkerInfo) (jobs.ControlSignals, error) {
	o, err := p.WorkerRegistry.Heartbeat(ctx, w)
	if err != nil {
		return o, err
	}
	if half, err := p.half(ctx); err != nil || half {
		o.Paused = p.queues
		return o, err
	}
	return o, nil
}

// settleEvery is how often a worker looks for a restore whose process died. It is longer
// than the lock of one that still runs.
const settleEvery = time.Minute

// settling brings such a restore to its end beside the worker, until stop is called.
func settling(ctx context.Context, settle func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(settleEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				settle(ctx)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// resident is what the process occupies. Workers ask for it every few seconds, and the
// collector adapts to what lives then.
func (r *Services) resident() int64 {
	r.collector.Adapt()
	return memory.Resident()
}
