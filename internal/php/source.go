package php

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Source is where jobs of PHP come from and where their outcomes are written.
type Source interface {
	// Claim takes due jobs of PHP. It is committed when it returns. No job is an
	// empty result, not an error; jobs.ErrUnseen says that there was too much to look
	// at: claim again at once.
	Claim(ctx context.Context, r Request) ([]Job, error)
	// Renew extends leases and returns them renewed, in the same order; a lost
	// lease comes back as the zero Lease.
	Renew(ctx context.Context, leases []jobs.Lease, lease time.Duration) ([]jobs.Lease, error)
	// Release releases jobs that never started: the attempt is not counted.
	Release(ctx context.Context, list []Job) error
	// Settle writes ends: one error an end, nil or jobs.ErrLeaseLost. The second
	// result is set when it is not known what was written: settle the same again.
	Settle(ctx context.Context, ends []End) ([]error, error)
	// Waits says how long the oldest due job of a queue that nobody has waits; 0 is
	// that there is none.
	Waits(ctx context.Context, queue string) (time.Duration, error)
}

// Request says what to claim.
type Request struct {
	Queue string
	Limit int
	Lease time.Duration
	// Before is called with the leases that are about to be written: some may then
	// be another's. nil is nobody.
	Before func([]jobs.Lease)
}

// Job is a row of PHP's that is claimed for this host.
type Job struct {
	// Claimed has the row: Job.Type is the payload's displayName, Payload the whole
	// payload byte for byte, Job.Timeout what the payload names (0: nothing).
	jobs.Claimed
	// NoTimeout says that the payload names the time-out 0: the job has none.
	NoTimeout bool
	// Backoff are the payload's waits between attempts; empty where it has none.
	Backoff []time.Duration
	// Crashes are the runs of the job whose process died in them, LastCrash is how
	// the last of them ended.
	Crashes   int
	LastCrash string
}

// Outcome is what becomes of a job.
type Outcome int

// The outcomes.
const (
	Deleted  Outcome = iota + 1 // done: the row goes
	Released                    // due again after Delay; the attempt counts
	Failed                      // to failed_jobs with Exception
	Crashed                     // its process died: as Released, and recorded as a crash
)

// End is how a run ended, for the Source to write.
type End struct {
	Job     Job
	Outcome Outcome
	Delay   time.Duration
	// Exception is what failed_jobs gets, why the attempt failed, or how the
	// process ended. "" is nothing: a job that released itself.
	Exception      string
	Lines          []jobs.LogLine // what the job printed
	Worker         string
	Duration, Wait time.Duration
}

// DiedInJob is what the Exception of a crash begins with.
const DiedInJob = "the PHP process died in the job: "

// Word is the outcome as the history names it.
func (e *End) Word() string {
	switch {
	case e.Outcome == Deleted:
		return jobs.Completed.String()
	case e.Outcome == Failed:
		return jobs.Failed.String()
	case e.Outcome == Crashed:
		return jobs.CrashedOutcome
	case e.Exception != "":
		return jobs.Retried.String()
	}
	return jobs.Released.String()
}

// Settlement is the end as logs and figures of our jobs have it.
func (e *End) Settlement() jobs.Settlement {
	outcome := jobs.Completed
	switch {
	case e.Outcome == Failed:
		outcome = jobs.Failed
	case e.Outcome == Crashed, e.Outcome == Released && e.Exception != "":
		outcome = jobs.Retried
	case e.Outcome == Released:
		outcome = jobs.Released
	}
	return jobs.Settlement{Claimed: e.Job.Claimed, Outcome: outcome, Delay: e.Delay, Error: e.Exception,
		Worker: e.Worker, Duration: e.Duration, Wait: e.Wait}
}

// delayAfterCrash is the wait before a job runs again whose process died: what
// its payload says for this attempt, as Laravel reads it.
func (j *Job) delayAfterCrash() time.Duration {
	if len(j.Backoff) == 0 {
		return 0
	}
	return j.Backoff[min(max(j.Job.Attempt-1, 0), len(j.Backoff)-1)]
}
