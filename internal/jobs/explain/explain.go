package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Breaker is a dependency that is known to be down: jobs of its types wait.
type Breaker struct {
	Name  string // e.g. "smtp mail.example:587"
	Types []string
	Until time.Time // the next probe
	Error string
}

// Snapshot is all that the answer depends on, at one moment.
type Snapshot struct {
	Job jobs.Record
	// Now by the database's clock where it is known.
	Now time.Time
	// Known says that a handler for the type is registered here; Policy is its.
	Known  bool
	Policy jobs.Policy
	// Elsewhere says that only the workers of another program run the type.
	Elsewhere bool
	// Running counts jobs of the type that run now, in the whole fleet.
	Running int
	Workers []jobs.WorkerRecord
	Paused  bool // the job's queue
	// Ahead counts jobs of the same queue that are due and come earlier; −1
	// when nobody counted.
	Ahead    int64
	Breakers []Breaker
	// JobsDisabled is JOBS_ENABLED=false.
	JobsDisabled bool
	// RunsPHP says that PHP's jobs of the queue are run here.
	RunsPHP bool
}

// Reason is one thing that holds the job back.
type Reason struct {
	// Code is stable: foreign, php, unreadable, unknown_kind, disabled, ended, running, stalled,
	// not_due, retrying, paused, no_worker, no_worker_for_type, type_limit, rate, breaker,
	// busy, behind, ready.
	Code string `json:"code"`
	Text string `json:"text"`
	// Until is when this reason ends by itself; zero when it does not.
	Until time.Time `json:"until,omitzero"`
	// Form and Args are what Text is made of, for who says it in another
	// language.
	Form string `json:"-"`
	Args []any  `json:"-"`
}

func reason(code string, until time.Time, form string, args ...any) Reason {
	return Reason{Code: code, Text: display.Sprintf(form, args...), Until: until, Form: form, Args: args}
}

// Job names everything that holds the job back, the strongest reason first.
// There is always one reason at least; the last resort is "ready".
func Job(s Snapshot) []Reason {
	if ended := end(s); ended != nil {
		return ended
	}
	reasons := slices.Concat(ownership(s), timing(s), gates(s), workers(s))
	if len(reasons) == 0 {
		reasons = waiting(s)
	}
	return reasons
}

func end(s Snapshot) []Reason {
	j := s.Job
	switch j.Status {
	case jobs.StatusProcessing:
		if j.Foreign {
			return []Reason{runningPHP(s)}
		}
		if j.Detail == "stalled" {
			return []Reason{reason("stalled", time.Time{}, "Its worker %s has not renewed the lease: it died or was "+
				"cut off. Another worker takes the job when the lease has run out.", j.Worker)}
		}
		return []Reason{running(s)}
	case jobs.StatusCompleted:
		return []Reason{reason("ended", time.Time{}, "It is done and will not run again.")}
	case jobs.StatusCancelled:
		return []Reason{reason("ended", time.Time{}, "A person cancelled it. Run it again to enqueue it again.")}
	case jobs.StatusFailed:
		if j.Attempt == 0 { // nobody wrote down how often it ran
			return []Reason{reason("ended", time.Time{}, "It failed for good: %s. Retry it once the cause is fixed.",
				or(display.Short(j.Error, 200), "no error was recorded"))}
		}
		return []Reason{reason("ended", time.Time{}, "It failed for good after %d {attempt|attempts}: %s. Retry "+
			"it once the cause is fixed.", j.Attempt, or(display.Short(j.Error, 200), "no error was recorded"))}
	}
	return nil
}

// running says for how long, where the start is known.
func running(s Snapshot) Reason {
	j := s.Job
	if j.StartedAt.IsZero() {
		return reason("running", time.Time{}, "It is running: attempt %d of %d, on %s.", j.Attempt, j.MaxAttempts,
			or(j.Worker, "a worker"))
	}
	return reason("running", time.Time{}, "It is running: attempt %d of %d, on %s, for %s.",
		j.Attempt, j.MaxAttempts, or(j.Worker, "a worker"), span(s.Now.Sub(j.StartedAt)))
}

// runningPHP says who runs a job of PHP's, where a process of this service does.
func runningPHP(s Snapshot) Reason {
	j := s.Job
	switch {
	case j.Detail == "stalled":
		return reason("stalled", time.Time{}, "It has been reserved for longer than retry_after: the worker that took "+
			"it died, or takes longer than that. The next worker of the queue %s that is free runs it again.", j.Queue)
	case j.Process == 0:
		return reason("running", time.Time{}, "It is running: attempt %d.", j.Attempt)
	case j.Deadline.IsZero():
		return reason("running", time.Time{}, "It is running: attempt %d, in the PHP process %d of %s, for %s. It has "+
			"no time-out.", j.Attempt, j.Process, j.Worker, span(s.Now.Sub(j.StartedAt)))
	}
	return reason("running", j.Deadline, "It is running: attempt %d, in the PHP process %d of %s, for %s. At its "+
		"time-out it is ended.", j.Attempt, j.Process, j.Worker, span(s.Now.Sub(j.StartedAt)))
}

func ownership(s Snapshot) []Reason {
	switch {
	case s.Job.Foreign && s.RunsPHP && !s.JobsDisabled:
		return nil
	case s.Job.Foreign:
		return []Reason{reason("foreign", time.Time{}, "It belongs to PHP (%s): only the CMS's own queue worker (php "+
			"artisan queue:work) runs it. The queue %s is not among php.queues of this service.", s.Job.Type,
			s.Job.Queue)}
	case s.Job.Type == "" && len(s.Job.Payload) > 0 && !json.Valid(s.Job.Payload):
		return []Reason{reason("unreadable", time.Time{}, "Its payload is not JSON, so that no worker can tell its "+
			"type. Correct the row, or remove the job: cmsjobs jobs cancel %s.", s.Job.UUID)}
	case !s.Known:
		return []Reason{reason("unknown_kind", time.Time{}, "No handler here is registered for %q. Check the "+
			"spelling, or remove the job.", s.Job.Type)}
	case s.JobsDisabled:
		return []Reason{reason("disabled", time.Time{}, "Jobs are switched off (JOBS_ENABLED=false): nothing is "+
			"taken from the queues.")}
	}
	return nil
}

func timing(s Snapshot) []Reason {
	wait := s.Job.RunAt.Sub(s.Now)
	if wait <= 0 {
		return nil
	}
	if s.Job.Attempt > 0 {
		return []Reason{reason("retrying", s.Job.RunAt, "Attempt %d of %d failed (%s). The next one is due in %s.",
			s.Job.Attempt, s.Job.MaxAttempts, or(display.Short(s.Job.Error, 200), "no error was recorded"), span(wait))}
	}
	return []Reason{reason("not_due", s.Job.RunAt, "It is not due yet: %s to go.", span(wait))}
}

func gates(s Snapshot) []Reason {
	var reasons []Reason
	if s.Paused {
		reasons = append(reasons, reason("paused", time.Time{}, "The queue %s is paused. Continue it to let its jobs "+
			"run.", s.Job.Queue))
	}
	for _, b := range s.Breakers {
		if slices.Contains(b.Types, s.Job.Type) {
			reasons = append(reasons, reason("breaker", b.Until, "%s is down (%s). Jobs that need it wait without "+
				"losing attempts; the next probe is in %s.", b.Name, or(display.Short(b.Error, 200), "no details"),
				span(b.Until.Sub(s.Now))))
		}
	}
	if limit := s.Policy.Limit; s.Known && limit > 0 && s.Running >= limit {
		reasons = append(reasons, reason("type_limit", time.Time{}, "At most %d of %s may run at once, and %d do.",
			limit, s.Job.Type, s.Running))
	}
	if len(s.Policy.Rates) > 0 {
		reasons = append(reasons, reason("rate", time.Time{},
			"Jobs of %s begin at the rate %s. What is above it waits.", s.Job.Type,
			strings.Join(s.Policy.RateTexts(), ", ")))
	}
	return reasons
}

// HeldBy is the name of the dependency that a waiting job was released for,
// "" when nothing that it needs is down.
func HeldBy(job jobs.Record, down []Breaker) string {
	if job.Status != jobs.StatusQueued || job.Foreign {
		return ""
	}
	for _, b := range down {
		if slices.Contains(b.Types, job.Type) {
			return b.Name
		}
	}
	return ""
}

func workers(s Snapshot) []Reason {
	if s.Job.Foreign || !s.Known || s.JobsDisabled {
		return nil
	}
	live, listening, able, free := s.countWorkers()
	switch {
	case able == 0 && s.Elsewhere:
		return []Reason{reason("no_worker_for_type", time.Time{}, "The program that runs %s has no live worker. The "+
			"job waits for one; nothing is lost.", s.Job.Type)}
	case live == 0:
		return []Reason{reason("no_worker", time.Time{}, "No worker is alive. Start one: cmsjobs work.")}
	case listening == 0:
		return []Reason{reason("no_worker", time.Time{}, "Of %d live workers none listens to the queue %s. Start one "+
			"that does: cmsjobs work --queue=%s.", live, s.Job.Queue, s.Job.Queue)}
	case able == 0:
		return []Reason{reason("no_worker_for_type", time.Time{}, "No worker of the queue %s has a handler for %s. "+
			"They may be of an older version: restart them.", s.Job.Queue, s.Job.Type)}
	case free == 0 && s.Job.RunAt.Before(s.Now):
		return []Reason{reason("busy", time.Time{}, "All slots of the workers that can run it (%d) are busy. Raise "+
			"the number of slots or start another worker.", able)}
	}
	return nil
}

// countWorkers counts the live workers, those of the job's queue, those of them that run
// its type, and the free slots of the last.
func (s Snapshot) countWorkers() (live, listening, able, free int) {
	for _, w := range s.Workers {
		if !w.Alive || w.Status == "stopping" || !w.RunsTypes() {
			continue
		}
		live++
		if !slices.Contains(w.Queues, s.Job.Queue) {
			continue
		}
		listening++
		if len(w.Types) > 0 && !slices.Contains(w.Types, s.Job.Type) {
			continue
		}
		able++
		free += max(w.Slots-len(w.Running), 0)
	}
	return live, listening, able, free
}

func waiting(s Snapshot) []Reason {
	if s.Job.Foreign {
		return []Reason{reason("php", time.Time{}, "Nothing holds it back: the next PHP process of the queue %s that "+
			"is "+
			"free takes it. In maintenance mode (php artisan down) none takes any.", s.Job.Queue)}
	}
	if s.Ahead > 0 {
		return []Reason{reason("behind", time.Time{}, "It is due; %d {job is|jobs are} before it in the queue %s.",
			s.Ahead, s.Job.Queue)}
	}
	return []Reason{reason("ready", time.Time{}, "It is due and nothing holds it back: a worker takes it at its next "+
		"poll.")}
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d/time.Hour), int(d%time.Hour/time.Minute))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}
