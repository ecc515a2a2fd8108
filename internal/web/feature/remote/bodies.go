package remote

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/remote"
)

// WorkerRegistration is how a program registers. Lengths are in seconds.
type WorkerRegistration struct {
	Name    string       `json:"name"` // what it is and where it runs: shop@web-1
	Version string       `json:"version,omitempty"`
	Slots   int          `json:"slots"`           // jobs at once, 1 to 100
	Lease   int          `json:"lease,omitempty"` // how long it may be silent: 5 to 600, 30 if absent
	Types   []WorkerType `json:"types"`
}

// WorkerType is a type that the program runs.
type WorkerType struct {
	Type  string `json:"type"` // area.verb
	Title string `json:"title,omitempty"`
	Queue string `json:"queue,omitempty"`
	// Schema is the payload's JSON Schema; absent takes every object.
	Schema      json.RawMessage `json:"schema,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"` // 3 if absent
	Timeout     int             `json:"timeout,omitempty"`      // of a run, 300 if absent
	Backoff     []int           `json:"backoff,omitempty"`      // waits after failed attempts
	Limit       int             `json:"limit,omitempty"`        // at once in the whole fleet
	Rate        []string        `json:"rate,omitempty"`         // begun in each length of time: "10/s"
}

func (r WorkerRegistration) registration(allowed []string) remote.Registration {
	reg := remote.Registration{Name: r.Name, Version: r.Version, Slots: r.Slots, Lease: seconds(r.Lease),
		Allowed: allowed}
	for _, t := range r.Types {
		one := remote.Type{Name: t.Type, Title: t.Title, Queue: t.Queue, Schema: t.Schema, MaxAttempts: t.MaxAttempts,
			Timeout: seconds(t.Timeout), Limit: t.Limit, Rates: t.Rate}
		for _, wait := range t.Backoff {
			one.Backoff = append(one.Backoff, seconds(wait))
		}
		reg.Types = append(reg.Types, one)
	}
	return reg
}

// seconds is a length that a caller wrote; one beyond a year is as wrong as a year.
func seconds(n int) time.Duration {
	const year = 366 * 24 * 60 * 60
	return time.Duration(max(min(n, year), -year)) * time.Second
}

// WorkerRegistered is the answer to a registration.
type WorkerRegistered struct {
	ID        string   `json:"id"`        // names the worker in every other call
	Lease     int      `json:"lease"`     // a job that no heartbeat names for so long is lost to the worker
	Heartbeat int      `json:"heartbeat"` // how often to send one
	Queues    []string `json:"queues"`
}

// ClaimRequest asks for jobs.
type ClaimRequest struct {
	Limit int `json:"limit"`
	Wait  int `json:"wait,omitempty"` // how long to wait for one, 0 to 20
}

// ClaimedJobs are jobs that the worker runs now.
type ClaimedJobs struct {
	Jobs []ClaimedJob `json:"jobs"`
	Stop bool         `json:"stop"` // finish what runs, and leave
}

// ClaimedJob is one of them.
type ClaimedJob struct {
	Lease       string          `json:"lease"` // names this run in every other call
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Queue       string          `json:"queue"`
	Payload     json.RawMessage `json:"payload"`
	Metadata    json.RawMessage `json:"metadata"`
	Attempt     int             `json:"attempt"`
	MaxAttempts int             `json:"max_attempts"`
	Timeout     int             `json:"timeout"`
	RunAt       time.Time       `json:"run_at,omitzero"`
	EnqueuedAt  time.Time       `json:"enqueued_at,omitzero"`
}

func claimed(list []remote.Handed, orders remote.Orders) ClaimedJobs {
	answer := ClaimedJobs{Jobs: make([]ClaimedJob, 0, len(list)), Stop: orders.Stop}
	for _, x := range list {
		j := x.Job
		answer.Jobs = append(answer.Jobs, ClaimedJob{Lease: x.Lease, ID: j.UUID, Type: j.Type, Queue: j.Queue,
			Payload: j.Data, Metadata: j.Metadata, Attempt: j.Attempt, MaxAttempts: j.MaxAttempts,
			Timeout: int(x.Timeout / time.Second), RunAt: j.RunAt, EnqueuedAt: j.EnqueuedAt})
	}
	return answer
}

// HeartbeatRequest names every job that the worker still runs.
type HeartbeatRequest struct {
	Jobs []JobHeartbeat `json:"jobs"`
}

// JobHeartbeat says how far a job is.
type JobHeartbeat struct {
	Lease    string         `json:"lease"`
	Progress *jobs.Progress `json:"progress,omitempty"`
	Log      []string       `json:"log,omitempty"` // lines since the last heartbeat, at most 500
}

// HeartbeatAnswer says what became of the jobs.
type HeartbeatAnswer struct {
	Jobs []JobStatus `json:"jobs"`
	Stop bool        `json:"stop"` // finish what runs, and leave
}

// JobStatus is running; cancelled or timeout (stop it, then send fail); or lost:
// stop it, another worker has it.
type JobStatus struct {
	Lease  string `json:"lease"`
	Status string `json:"status"`
}

// CompleteRequest says that a job is done.
type CompleteRequest struct {
	Lease  string          `json:"lease"`
	Result json.RawMessage `json:"result,omitempty"`
}

// FailRequest says that a run failed.
type FailRequest struct {
	Lease string `json:"lease"`
	Error string `json:"error"`
	// Permanent says that repeating would not fix it.
	Permanent bool `json:"permanent,omitempty"`
}

// ReleaseRequest puts a job back; the attempt does not count.
type ReleaseRequest struct {
	Lease string `json:"lease"`
	Delay int    `json:"delay,omitempty"` // until it is due
	Why   string `json:"why,omitempty"`
}
