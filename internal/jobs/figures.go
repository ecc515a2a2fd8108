package jobs

import "encoding/json"

// Figure defines a number that people see of jobs. Every surface (page, API,
// command line, metrics) that shows one counts it so.
type Figure struct {
	// Name is the figure's name in documents.
	Name string
	// Counts says what is counted, in Markdown without a full stop.
	Counts string
	// Shown says where, in Markdown without a full stop.
	Shown string
}

// Figures are all definitions, in the order of a job's life. Jobs are counted
// as they stand now; attempts are counted within a period.
func Figures() []Figure {
	return []Figure{
		{"waiting jobs", "jobs now that no worker has claimed: queued, delayed and PHP's own together",
			"tile and tab “Waiting”, `pending` in `/stats`, total of `/jobs?status=queued`"},
		{"queued jobs", "waiting jobs that are due, without PHP's own. A paused queue's jobs count",
			"`jobs stats`, `/queues`, `cmsjobs_queue_jobs{status=\"queued\"}`"},
		{"delayed jobs", "waiting jobs that are not due yet, without PHP's own. Jobs that wait for their retry count",
			"`delayed` in `jobs stats`, `/stats`, `/queues` and metrics"},
		{"PHP's own jobs", "waiting jobs of Laravel's classes, due or not. In a queue with more than 1,000 waiting " +
			"jobs it is an estimate", "`foreign` in `jobs stats`, `/stats`, `/queues` and metrics"},
		{"running jobs", "jobs now that a worker has claimed. Stalled jobs and those of PHP's workers count",
			"`processing` everywhere, tile and tab “Running”"},
		{"failed jobs", "rows of `failed_jobs` now. A retry by hand takes a job out; PHP's failed jobs count",
			"`failed` in `jobs stats`, `/stats`, `/jobs?status=failed` and metrics, tile and tab “Failed”; the " +
				"causes add up to it"},
		{"completed jobs", "jobs in the history that completed", "`completed` in `jobs stats` and `/stats`, tile and " +
			"tab “Completed”"},
		{"cancelled jobs", "jobs in the history that a person or program cancelled",
			"`cancelled` in `jobs stats` and `/stats`, tab “Cancelled”"},
		{"success rate", "completed ÷ (completed + failed) of the ends in the history. Only the attempt that ends a " +
			"job counts, not those that were retried; a job that was retried by hand ended twice",
			"`success_rate`, tile “Failed”"},
		{"completed attempts", "runs of a period that ended `completed`", "plots, `completed` in `/throughput`, " +
			"`outcome=\"completed\"` in metrics"},
		{"failed attempts", "runs of a period that ended `failed`, `retried` or `crashed`. Attempts that were " +
			"released or cancelled count neither as completed nor as failed",
			"plots, `failed_attempts` in `/throughput`, the overview's line on the last hour, the condition " +
				"`failure_rate` (it leaves notifications out)"},
		{"jobs that failed in a period", "runs of a period that ended `failed`: attempts that ended a job. A job " +
			"that was retried by hand since counts too", "`failed` in `/throughput`, the overview's line on the last " +
			"hour"},
		{"failed jobs of the last day", "failed jobs now whose last attempt ended within 24 hours", "`doctor`"},
	}
}

// CrashedOutcome is the outcome of an attempt whose worker died. No worker
// settles so, so it is no Outcome.
const CrashedOutcome = "crashed"

// PartialOutcome is that of a tick whose job did only a part of its work, as its result
// says; the run itself ended completed or failed.
const PartialOutcome = "partial"

// TickOutcome is the outcome of a tick whose job's last run ended so. A result whose
// field status is "partial" says that only a part was done.
func TickOutcome(run string, result json.RawMessage) string {
	var r struct {
		Status string `json:"status"`
	}
	if (run == Completed.String() || run == Failed.String()) && json.Unmarshal(result, &r) == nil &&
		r.Status == PartialOutcome {
		return PartialOutcome
	}
	return run
}

// FailedAttempt says whether an attempt that ended so is one of the failed
// attempts.
func FailedAttempt(outcome string) bool {
	return outcome == Failed.String() || outcome == Retried.String() || outcome == CrashedOutcome
}

// Waiting counts the waiting jobs.
func (s Stats) Waiting() int64 { return s.Queued + s.Delayed + s.Foreign }

// Waiting counts the waiting jobs of the queue.
func (q QueueStats) Waiting() int64 { return q.Queued + q.Delayed + q.Foreign }
