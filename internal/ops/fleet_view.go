package ops

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// StatsView are the figures of the service. Times are in milliseconds.
type StatsView struct {
	Waiting       int64       `json:"waiting"` // all that wait: due, delayed and PHP's own
	Queued        int64       `json:"queued"`  // due
	Delayed       int64       `json:"delayed"`
	Foreign       int64       `json:"foreign"` // PHP's own
	Processing    int64       `json:"processing"`
	Completed     int64       `json:"completed"`
	Failed        int64       `json:"failed"`
	Cancelled     int64       `json:"cancelled"`
	SuccessRate   float64     `json:"success_rate"` // 0…1; 0 where ended is 0
	Ended         int64       `json:"ended"`        // what success_rate is made of
	AvgDurationMS int64       `json:"avg_duration_ms"`
	OldestMS      int64       `json:"oldest_ms"` // how long the longest waiting due job has waited
	Queues        []QueueView `json:"queues"`
	MoreQueues    int         `json:"more_queues,omitempty"` // that are counted above and not listed
}

// Stats shows the figures.
func Stats(s jobs.Stats) StatsView {
	return StatsView{Waiting: s.Waiting(), Queued: s.Queued, Delayed: s.Delayed, Foreign: s.Foreign,
		Processing: s.Processing, Completed: s.Completed, Failed: s.Failed,
		Cancelled: s.Cancelled, SuccessRate: s.SuccessRate, Ended: s.Ended,
		AvgDurationMS: s.AverageDuration.Milliseconds(), OldestMS: s.Oldest.Milliseconds(),
		Queues: Each(s.Queues, Queue), MoreQueues: s.MoreQueues}
}

// QueueView are the figures of one queue.
type QueueView struct {
	Name       string `json:"name"`
	Queued     int64  `json:"queued"`
	Delayed    int64  `json:"delayed"`
	Processing int64  `json:"processing"`
	Foreign    int64  `json:"foreign"`
	OldestMS   int64  `json:"oldest_ms"`
	Paused     bool   `json:"paused"`
	Workers    int    `json:"workers"`
	// PHPProcesses run PHP's jobs of the queue.
	PHPProcesses int `json:"php_processes"`
}

// Queue shows a queue.
func Queue(q jobs.QueueStats) QueueView {
	return QueueView{Name: q.Queue, Queued: q.Queued, Delayed: q.Delayed, Processing: q.Processing, Foreign: q.Foreign,
		OldestMS: q.Oldest.Milliseconds(), Paused: q.Paused, Workers: q.Workers, PHPProcesses: q.PHPProcesses}
}

// WorkerView is a worker and what it runs.
type WorkerView struct {
	ID      string   `json:"id"`
	Host    string   `json:"host"`
	PID     int      `json:"pid"`
	Version string   `json:"version"`
	Status  string   `json:"status"` // running, stopping, dead
	Queues  []string `json:"queues"`
	Slots   int      `json:"slots"` // at present
	// ConfiguredSlots are those that it has while nobody orders others, MaxSlots the most
	// that it takes, OrderedSlots those that were ordered for this worker alone.
	ConfiguredSlots int           `json:"configured_slots"`
	MaxSlots        int           `json:"max_slots"`
	OrderedSlots    int           `json:"ordered_slots,omitempty"`
	MemoryBytes     int64         `json:"memory_bytes"`
	Done            int64         `json:"done"`
	Failed          int64         `json:"failed"`
	StartedAt       time.Time     `json:"started_at"`
	SeenAt          time.Time     `json:"seen_at"`
	Running         []RunningView `json:"running"`
	PHP             []ProcessView `json:"php"` // processes beside its slots, for PHP's jobs
}

// Jobs is how many jobs it runs, PHP's with ours.
func (w WorkerView) Jobs() int {
	n := len(w.Running)
	for _, p := range w.PHP {
		if p.Job != nil {
			n++
		}
	}
	return n
}

// ProcessView is a PHP process and what it runs.
type ProcessView struct {
	Queue       string       `json:"queue"`
	PID         int          `json:"pid"`
	StartedAt   time.Time    `json:"started_at"`
	MemoryBytes int64        `json:"memory_bytes"` // 0: not known
	Done        int64        `json:"done"`         // jobs that ended in it
	Job         *RunningView `json:"job,omitempty"`
	Deadline    time.Time    `json:"deadline,omitzero"` // the time-out of the job
}

// RunningView is a job that a worker runs.
type RunningView struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Queue    string         `json:"queue"`
	Attempt  int            `json:"attempt"`
	Since    time.Time      `json:"since"`
	Progress *jobs.Progress `json:"progress,omitempty"`
}

// Worker shows a worker.
func (v Viewer) Worker(w jobs.WorkerRecord) WorkerView {
	status := w.Status
	if !w.Alive {
		status = "dead"
	}
	return WorkerView{ID: w.ID, Host: w.Host, PID: w.PID, Version: w.Version, Status: status,
		Queues: Each(w.Queues, func(q string) string { return q }), Slots: w.Slots,
		ConfiguredSlots: w.ConfiguredSlots, MaxSlots: w.MaxSlots, OrderedSlots: w.OrderedSlots,
		MemoryBytes: w.MemoryBytes, Done: w.Done, Failed: w.Failed, StartedAt: UTC(w.StartedAt), SeenAt: UTC(w.SeenAt),
		Running: Each(w.Running, v.running), PHP: Each(w.PHP, v.process)}
}

func (v Viewer) running(r jobs.RunningJob) RunningView {
	return RunningView{r.UUID, r.Type, r.Queue, r.Attempt, UTC(r.Since), v.Progress(r.Progress)}
}

func (v Viewer) process(p jobs.PHPProcess) ProcessView {
	view := ProcessView{Queue: p.Queue, PID: p.PID, StartedAt: UTC(p.StartedAt), MemoryBytes: p.MemoryBytes,
		Done: p.Done, Deadline: UTC(p.Deadline)}
	if p.Job != nil {
		job := v.running(*p.Job)
		view.Job = &job
	}
	return view
}

// ScheduleView is a schedule entry.
type ScheduleView struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	Queue   string          `json:"queue"`
	Cron    string          `json:"cron"`
	Zone    string          `json:"zone"`
	Payload json.RawMessage `json:"payload"`
	Paused  bool            `json:"paused"`
	CatchUp string          `json:"catch_up"`
	Changed bool            `json:"changed"` // differs from the configuration
	Next    []time.Time     `json:"next"`
	Last    *TickView       `json:"last,omitempty"`
}

// Schedule shows a schedule entry.
func (v Viewer) Schedule(r jobs.ScheduleRecord) ScheduleView {
	view := ScheduleView{Name: r.Name, Type: r.Type, Queue: r.Queue, Cron: r.Cron, Zone: r.Zone,
		Payload: v.Payload(r.Type, r.Data), Paused: r.Paused,
		CatchUp: r.CatchUp, Changed: r.Changed, Next: Each(r.Next, UTC)}
	if r.Last != nil {
		last := v.Tick(*r.Last)
		view.Last = &last
	}
	return view
}

// TickView is one tick of an entry.
type TickView struct {
	Entry      string    `json:"entry"`
	Tick       time.Time `json:"tick"`
	At         time.Time `json:"at,omitzero"`
	Job        string    `json:"job,omitempty"`
	Outcome    string    `json:"outcome"`
	DurationMS int64     `json:"duration_ms"` // of the job's last run
	Note       string    `json:"note,omitempty"`
}

// Tick shows a tick.
func (v Viewer) Tick(t jobs.TickRecord) TickView {
	return TickView{t.Entry, UTC(t.Tick), UTC(t.At), t.UUID, t.Outcome, t.Duration.Milliseconds(), v.Text(t.Note)}
}

// TickReport says what a round of the service did.
type TickReport struct {
	Enqueued int `json:"enqueued"`
	Missed   int `json:"missed"`
	Skipped  int `json:"skipped"`
	Ran      int `json:"ran"`
	Failed   int `json:"failed"`
}
