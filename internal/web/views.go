package web

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// Total is −1 where counting would be dear.
	Total  int64 `json:"total"`
	Limit  int   `json:"limit"`
	Offset int   `json:"offset"`
	// Next is the cursor of the next part; it is absent at the end.
	Next string `json:"next,omitempty"`
}

// Items is a whole list that needs no pages.
type Items[T any] struct {
	Items []T `json:"items"`
}

// The lists of the API.
type (
	JobList        = Page[JobView]
	S2List         = Page[S2Job]
	RunList        = Page[RunView]
	TickList       = Page[TickView]
	AuditEntryList = Page[AuditEntry]
	GroupList      = Items[GroupView]
	KindList       = Items[KindView]
	QueueList      = Items[QueueView]
	WorkerList     = Items[WorkerView]
	ScheduleList   = Items[ScheduleView]
	SettingList    = Items[Setting]
	TokenList      = Items[Token]
)

// JobView is a job as the API shows it: the fields of S1.17 and what we know
// besides. Secrets in it are masked.
type JobView struct {
	ID          string          `json:"id"`     // the UUID, or the number of a row without one
	Number      int64           `json:"number"` // of the row, in the table where it lies
	Topic       string          `json:"topic"`
	Type        string          `json:"type"` // the same as topic
	Queue       string          `json:"queue"`
	Payload     json.RawMessage `json:"payload"`
	Metadata    json.RawMessage `json:"metadata"`
	Status      string          `json:"status"`
	Detail      string          `json:"detail,omitempty"` // delayed, retrying, stalled, paused
	Foreign     bool            `json:"foreign"`          // PHP's own
	Priority    int             `json:"priority"`
	RunAt       time.Time       `json:"run_at,omitzero"`
	Retries     int             `json:"retries"`     // failed starts so far
	MaxRetries  int             `json:"max_retries"` // starts allowed − 1
	Attempts    int             `json:"attempts"`    // starts so far
	MaxAttempts int             `json:"max_attempts"`
	LastError   string          `json:"last_error,omitempty"`
	Worker      string          `json:"worker,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Progress    *jobs.Progress  `json:"progress,omitempty"`
	Created     time.Time       `json:"created,omitzero"`
	Updated     time.Time       `json:"updated,omitzero"`
	StartedAt   time.Time       `json:"started_at,omitzero"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	DurationMS  int64           `json:"duration_ms"`
}

// S2Job is a job in the words of S2.3.
type S2Job struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload"`
	Status      string          `json:"status"`
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"maxAttempts"`
	RunAt       time.Time       `json:"runAt,omitzero"`
	LockedAt    time.Time       `json:"lockedAt,omitzero"`
	LockedBy    string          `json:"lockedBy,omitempty"`
	LastError   string          `json:"lastError,omitempty"`
	SucceededAt time.Time       `json:"succeededAt,omitzero"`
	FailedAt    time.Time       `json:"failedAt,omitzero"`
	CreatedAt   time.Time       `json:"createdAt,omitzero"`
	UpdatedAt   time.Time       `json:"updatedAt,omitzero"`
}

// word is a state in a family's words.
func (f APIDialect) word(s jobs.Status) string {
	switch {
	case f == PocketBaseCompat && s == jobs.StatusQueued:
		return "pending"
	case f == S2Compat && s == jobs.StatusProcessing:
		return "running"
	case f == S2Compat && s == jobs.StatusCompleted:
		return "succeeded"
	}
	return string(s)
}

func (v viewer) job(r jobs.Record, words APIDialect) JobView {
	envelope, _, _ := jobs.Parse(r.Payload, v.known) // shown as well as it can be read
	payload := []byte(envelope.Data)
	if r.Foreign || len(payload) == 0 {
		payload = phpHidden(r.Payload)
	}
	return JobView{
		ID: idOf(r), Number: r.ID, Topic: r.Type, Type: r.Type, Queue: r.Queue,
		Payload: v.payload(r.Type, payload), Metadata: v.payload(r.Type, envelope.Metadata),
		Status: words.word(r.Status), Detail: r.Detail, Foreign: r.Foreign, Priority: r.Priority, RunAt: utc(r.RunAt),
		Retries: retries(r), MaxRetries: max(r.MaxAttempts-1, 0), Attempts: r.Attempt, MaxAttempts: r.MaxAttempts,
		LastError: v.text(r.Error), Worker: r.Worker, Result: v.result(r.Type, r.Result), Progress: v.progress(r.Progress),
		Created: utc(r.EnqueuedAt), Updated: utc(latest(r.EnqueuedAt, r.StartedAt, r.EndedAt)),
		StartedAt: utc(r.StartedAt), EndedAt: utc(r.EndedAt), DurationMS: r.Duration.Milliseconds(),
	}
}

func (v viewer) result(jobType string, raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return v.payload(jobType, raw)
}

func (x viewer) sketch(r jobs.Record) S2Job {
	v := x.job(r, S2Compat)
	out := S2Job{ID: v.ID, Type: v.Type, Payload: v.Payload, Status: v.Status, Attempts: v.Attempts, MaxAttempts: v.MaxAttempts, RunAt: v.RunAt,
		LastError: v.LastError, CreatedAt: v.Created, UpdatedAt: v.Updated}
	switch r.Status {
	case jobs.StatusProcessing:
		out.LockedAt, out.LockedBy = v.StartedAt, v.Worker
	case jobs.StatusCompleted:
		out.SucceededAt = v.EndedAt
	case jobs.StatusFailed:
		out.FailedAt = v.EndedAt
	}
	return out
}

// known says whether a name is a type here.
func (s *Server) known(name string) bool {
	_, ok := s.cfg.Registry.Lookup(name)
	return ok
}

// retries are the starts that failed: the running one has not.
func retries(r jobs.Record) int {
	switch r.Status {
	case jobs.StatusProcessing, jobs.StatusCompleted:
		return max(r.Attempt-1, 0)
	}
	return r.Attempt
}

// phpHidden takes PHP's serialized command out of a payload: it is unreadable
// and may hold anything.
func phpHidden(raw []byte) []byte {
	var keys map[string]json.RawMessage
	var data map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil || json.Unmarshal(keys["data"], &data) != nil || data["command"] == nil {
		return raw
	}
	data["command"] = json.RawMessage(`"(serialized PHP)"`)
	inner, err := json.Marshal(data)
	if err != nil {
		return []byte("{}")
	}
	keys["data"] = inner
	outer, err := json.Marshal(keys)
	if err != nil {
		return []byte("{}")
	}
	return outer
}

func idOf(r jobs.Record) string {
	if r.UUID != "" {
		return r.UUID
	}
	return formatInt(r.ID)
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func latest(times ...time.Time) time.Time {
	var newest time.Time
	for _, t := range times {
		if t.After(newest) {
			newest = t
		}
	}
	return newest
}

// RunView is one run in the history.
type RunView struct {
	ID         int64           `json:"id"`
	Job        string          `json:"job"`
	Type       string          `json:"type"`
	Queue      string          `json:"queue"`
	Attempt    int             `json:"attempt"`
	Outcome    string          `json:"outcome"`
	Worker     string          `json:"worker"`
	Error      string          `json:"error,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	DurationMS int64           `json:"duration_ms"`
	WaitMS     int64           `json:"wait_ms"`
}

func (v viewer) run(r jobs.RunRecord) RunView {
	return RunView{ID: r.ID, Job: r.UUID, Type: r.Type, Queue: r.Queue, Attempt: r.Attempt, Outcome: r.Outcome, Worker: r.Worker, Error: v.text(r.Error),
		Result: v.result(r.Type, r.Result), StartedAt: utc(r.StartedAt), EndedAt: utc(r.EndedAt), DurationMS: r.Duration.Milliseconds(), WaitMS: r.Wait.Milliseconds()}
}

// StatsView are the figures of S1.19 and what we know besides. Times are in
// milliseconds.
type StatsView struct {
	Pending          int64       `json:"pending"` // waiting jobs: the delayed ones and PHP's own included
	Delayed          int64       `json:"delayed"`
	Foreign          int64       `json:"foreign"` // PHP's own
	Processing       int64       `json:"processing"`
	Completed        int64       `json:"completed"`
	Failed           int64       `json:"failed"`
	Cancelled        int64       `json:"cancelled"`
	SuccessRate      float64     `json:"success_rate"` // 0…1; 0 where ended is 0
	Ended            int64       `json:"ended"`        // what success_rate is made of
	AvgExecutionTime int64       `json:"avg_execution_time"`
	OldestMS         int64       `json:"oldest_ms"` // how long the longest waiting due job has waited
	Queues           []QueueView `json:"queues"`
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
}

func statsView(st jobs.Stats) StatsView {
	return StatsView{Pending: st.Waiting(), Delayed: st.Delayed, Foreign: st.Foreign, Processing: st.Processing, Completed: st.Completed, Failed: st.Failed, Cancelled: st.Cancelled,
		SuccessRate: st.SuccessRate, Ended: st.Ended, AvgExecutionTime: st.AverageDuration.Milliseconds(), OldestMS: st.Oldest.Milliseconds(), Queues: each(st.Queues, queueView)}
}

func queueView(q jobs.QueueStats) QueueView {
	return QueueView{Name: q.Queue, Queued: q.Queued, Delayed: q.Delayed, Processing: q.Processing, Foreign: q.Foreign, OldestMS: q.Oldest.Milliseconds(), Paused: q.Paused, Workers: q.Workers}
}

// GroupView is failed jobs of one cause.
type GroupView struct {
	Cause     string    `json:"cause"` // to be given to filters
	Type      string    `json:"type"`
	Message   string    `json:"message"`
	Count     int64     `json:"count"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

func (v viewer) group(g jobs.FailureGroup) GroupView {
	return GroupView{Cause: g.Cause, Type: g.Type, Message: v.text(g.Message), Count: g.Count, FirstSeen: utc(g.FirstSeen), LastSeen: utc(g.LastSeen)}
}

// each maps a list; the result is never nil, so that JSON says [].
func each[T, V any](items []T, view func(T) V) []V {
	views := make([]V, 0, len(items))
	for _, item := range items {
		views = append(views, view(item))
	}
	return views
}
