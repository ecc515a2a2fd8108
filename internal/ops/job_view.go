package ops

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

// JobView is a job. Secrets in it are masked.
type JobView struct {
	ID      string          `json:"id"`     // the UUID, or the number of a row without one
	Number  int64           `json:"number"` // of the row, in the table where it lies
	Type    string          `json:"type"`
	Queue   string          `json:"queue"`
	Payload json.RawMessage `json:"payload"`
	// PayloadOmitted: an ended job's payload was confidential or too large for the history.
	PayloadOmitted bool            `json:"payload_omitted,omitempty"`
	Metadata       json.RawMessage `json:"metadata"`
	Status         string          `json:"status"`
	Detail         string          `json:"detail,omitempty"` // delayed, retrying, stalled, paused
	Foreign        bool            `json:"foreign"`          // PHP's own
	PHP            *PHPView        `json:"php,omitempty"`    // of PHP's own
	Priority       int             `json:"priority"`
	Attempts       int             `json:"attempts"`     // starts so far
	MaxAttempts    int             `json:"max_attempts"` // starts allowed
	Error          string          `json:"error,omitempty"`
	Worker         string          `json:"worker,omitempty"`
	// Process is the number of the PHP process that runs it, Deadline its time-out there.
	Process    int             `json:"process,omitempty"`
	Deadline   time.Time       `json:"deadline,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	Progress   *jobs.Progress  `json:"progress,omitempty"`
	EnqueuedAt time.Time       `json:"enqueued_at,omitzero"`
	RunAt      time.Time       `json:"run_at,omitzero"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	DurationMS int64           `json:"duration_ms"`
}

// Job shows a job.
func (v Viewer) Job(r jobs.Record) JobView {
	envelope, _, _ := jobs.Parse(r.Payload, v.known) // shown as well as it can be read
	payload := []byte(envelope.Data)
	if r.Foreign || len(payload) == 0 {
		payload = v.withoutPHP(r.Payload)
	}
	view := JobView{
		ID: IDOf(r), Number: r.ID, Type: r.Type, Queue: r.Queue, Payload: v.Payload(r.Type, payload),
		Metadata: v.Payload(r.Type, envelope.Metadata), PayloadOmitted: r.PayloadOmitted,
		Status: string(r.Status), Detail: r.Detail, Foreign: r.Foreign, PHP: v.php(r), Priority: r.Priority,
		Attempts:    r.Attempt,
		MaxAttempts: r.MaxAttempts,
		Error:       v.Text(r.Error), Worker: r.Worker, Process: r.Process, Deadline: UTC(r.Deadline),
		Result:     v.Result(r.Type, r.Result),
		Progress:   v.Progress(r.Progress),
		EnqueuedAt: UTC(r.EnqueuedAt), RunAt: UTC(r.RunAt), StartedAt: UTC(r.StartedAt), EndedAt: UTC(r.EndedAt),
		DurationMS: r.Duration.Milliseconds(),
	}
	if view.PHP != nil && view.MaxAttempts == 0 {
		view.MaxAttempts = view.PHP.maxTries
	}
	return view
}

// IDOf is a job's UUID, or the number of a row without one.
func IDOf(r jobs.Record) string {
	if r.UUID != "" {
		return r.UUID
	}
	return strconv.FormatInt(r.ID, 10)
}

// UTC is a time in UTC; the zero time stays zero.
func UTC(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// withoutPHP takes PHP's serialized command out of a payload: it is unreadable
// and may hold anything.
func (v Viewer) withoutPHP(raw []byte) []byte {
	var keys, data map[string]json.RawMessage
	if v.Mask == nil || json.Unmarshal(raw, &keys) != nil || json.Unmarshal(keys["data"], &data) != nil ||
		data["command"] == nil {
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

// RunView is one attempt in the history.
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

// Run shows a run.
func (v Viewer) Run(r jobs.RunRecord) RunView {
	return RunView{ID: r.ID, Job: r.UUID, Type: r.Type, Queue: r.Queue, Attempt: r.Attempt, Outcome: r.Outcome,
		Worker: r.Worker, Error: v.Text(r.Error),
		Result: v.Result(r.Type, r.Result), StartedAt: UTC(r.StartedAt), EndedAt: UTC(r.EndedAt),
		DurationMS: r.Duration.Milliseconds(), WaitMS: r.Wait.Milliseconds()}
}

// LogView is what a job's handler said, oldest first.
type LogView struct {
	Lines []jobs.LogLine `json:"lines"`
}

// MaxLogLines is how many lines a LogView has at most.
const MaxLogLines = 2000

// FailureGroupView is failed jobs of one cause.
type FailureGroupView struct {
	Cause     string    `json:"cause"` // to be given to filters
	Type      string    `json:"type"`
	Message   string    `json:"message"`
	Count     int64     `json:"count"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

// FailureGroup shows a group of failed jobs.
func (v Viewer) FailureGroup(g jobs.FailureGroup) FailureGroupView {
	return FailureGroupView{Cause: g.Cause, Type: g.Type, Message: v.Text(g.Message), Count: g.Count,
		FirstSeen: UTC(g.FirstSeen), LastSeen: UTC(g.LastSeen)}
}

// Explanation is why a job is not running.
type Explanation struct {
	Job     string           `json:"job"`
	Status  string           `json:"status"`
	Reasons []explain.Reason `json:"reasons"` // the strongest first; one at least
}

// Explanation shows why a job is not running.
func (v Viewer) Explanation(s explain.Snapshot) Explanation {
	return Explanation{IDOf(s.Job), string(s.Job.Status), v.Reasons(explain.Job(s))}
}

// Enqueued answers for one job that was enqueued.
type Enqueued struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Status     string    `json:"status"`
	RunAt      time.Time `json:"run_at,omitzero"`
	EnqueuedAt time.Time `json:"enqueued_at,omitzero"`
	// Existing says that a job with this id or unique key was there already.
	Existing bool `json:"existing,omitempty"`
	// Result and Error are there where jobs are disabled and the job ran at once.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// EnqueuedView shows a receipt without asking the database again: its times are
// by this host's clock, the row's by the database's.
func EnqueuedView(n jobs.Spec, r jobs.Receipt, now time.Time) Enqueued {
	at := n.RunAt
	if at.IsZero() {
		at = now.Add(n.Delay)
	}
	return Enqueued{ID: r.UUID, Type: n.Type, Status: string(jobs.StatusQueued), RunAt: at.UTC(),
		EnqueuedAt: now.UTC(), Existing: r.Existing}
}

// ExistingView shows a job that was there already.
func ExistingView(r jobs.Record) Enqueued {
	return Enqueued{ID: IDOf(r), Type: r.Type, Status: string(r.Status), RunAt: UTC(r.RunAt),
		EnqueuedAt: UTC(r.EnqueuedAt), Existing: true}
}

// JobColumn is a plain column of the lists of jobs for people. Type, status, time
// and error have links, colours and lengths of the place that shows them.
type JobColumn struct {
	Name string // the command line's heading; the page has the text job.NAME
	Text func(JobView) string
}

// JobColumns are the plain columns, which the page and the command line share.
func JobColumns() []JobColumn {
	return []JobColumn{
		{"queue", func(v JobView) string { return v.Queue }},
		{"attempt", JobView.AttemptText},
	}
}

// MoreJobColumns are those that a person may add to the page's list.
func MoreJobColumns() []JobColumn {
	return []JobColumn{
		{"worker", func(v JobView) string { return v.Worker }},
		{"priority", func(v JobView) string { return strconv.Itoa(v.Priority) }},
		{"enqueued", func(v JobView) string { return moment(v.EnqueuedAt) }},
		{"due", func(v JobView) string { return moment(v.RunAt) }},
		{"tags", func(v JobView) string {
			if v.PHP == nil {
				return ""
			}
			return strings.Join(v.PHP.Tags, " ")
		}},
	}
}

// moment is a time for a column; "" is unknown.
func moment(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}

// AttemptText is the starts so far, of those allowed.
func (v JobView) AttemptText() string {
	// PHP's, or from before the history: nobody wrote it down
	if v.Status == string(jobs.StatusFailed) && v.Attempts == 0 {
		return "–"
	}
	if v.MaxAttempts == 0 {
		return strconv.Itoa(v.Attempts)
	}
	return fmt.Sprintf("%d/%d", v.Attempts, v.MaxAttempts)
}
