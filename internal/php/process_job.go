package php

import (
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// limit is the job's time-out; 0 is none.
func (x *process) limit(j *Job) time.Duration {
	if j.NoTimeout || j.Job.Timeout > 0 {
		return j.Job.Timeout
	}
	return x.c.Timeout
}

// hand gives the process, which asks, a job.
func (x *process) hand(j *Job) {
	o := orderOf(j)
	switch {
	case j.Fault != nil:
		x.refuse(j, j.Fault.Error())
		return
	case j.Crashes > x.c.MaxCrashes:
		x.refuse(j, fmt.Sprintf("the job killed its PHP process %d times, the last time while it was failed for "+
			"that; the last: %s", j.Crashes, j.LastCrash))
		return
	case j.Crashes == x.c.MaxCrashes:
		o.GiveUp = fmt.Sprintf("the job killed its PHP process %d times and is not run again", j.Crashes)
	}
	if !x.taken {
		for _, l := range x.output.take() {
			x.c.Logger.Info("output of a PHP process outside of jobs", "event", "php.output", "queue", x.c.Queue,
				"line", l.Text)
		}
	}
	x.note(x.journal.hand(j.Lease.ID, x.cmd.Process.Pid))
	x.take(j)
	x.ahead.inHand = 0
	if x.sent = x.tell(&o); x.sent {
		x.note(x.journal.close(j.Lease.ID))
	}
	if !x.due.IsZero() {
		x.setAlarm()
	}
}

func orderOf(j *Job) order {
	return order{ID: j.Job.ID, Queue: j.Job.Queue, Attempts: j.Job.Attempt, Payload: string(j.Payload),
		Crash: j.LastCrash}
}

// take makes a job the one in hand.
func (x *process) take(j *Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.job, x.began, x.due, x.sent, x.taken = j, x.c.Now(), time.Time{}, false, false
	x.progress = nil
	if limit := x.limit(j); limit > 0 {
		x.due = x.began.Add(limit + killAfter)
	}
	x.busy.Add(1)
}

// putDown takes the job in hand from the process, which has not begun it.
func (x *process) putDown() *Job {
	x.mu.Lock()
	defer x.mu.Unlock()
	j := x.job
	x.job, x.due, x.taken = nil, time.Time{}, true
	x.busy.Add(-1)
	return j
}

// letGo notes that the job in hand has ended; it returns what it printed, as far as no
// heartbeat took it.
func (x *process) letGo() []jobs.LogLine {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.job, x.due, x.taken = nil, time.Time{}, true
	x.busy.Add(-1)
	x.ran++
	return x.output.takeEnded()
}

// setAlarm has the alarm come when the job in hand is due, or before: most jobs end
// long before, and the alarm that is set serves the next one, too.
func (x *process) setAlarm() {
	if x.alarmAt.IsZero() || x.due.Before(x.alarmAt) {
		x.alarmAt = x.due
		x.alarm.Reset(x.due.Sub(x.c.Now()))
	}
}

// overdue kills the process if its job is due, and else sets the alarm again.
func (x *process) overdue() {
	x.alarmAt = time.Time{}
	switch {
	case x.job == nil || x.due.IsZero():
	case x.due.After(x.c.Now()):
		x.setAlarm()
	default:
		x.kill("killed: it went on after its time-out")
	}
}

// refuse fails a job without running it.
func (x *process) refuse(j *Job, why string) {
	x.note(x.journal.close(j.Lease.ID))
	x.ends <- ending{End{Job: *j, Outcome: Failed, Exception: why, Worker: x.c.Worker}, x.written}
}

// finish ends the job in hand.
func (x *process) finish(e End, transactions int) {
	now := x.c.Now()
	e.Job, e.Worker = *x.job, x.c.Worker
	e.Duration, e.Wait = now.Sub(x.began), max(x.began.Sub(x.job.Job.RunAt), 0)
	e.Lines = x.letGo()
	x.note(x.journal.close(e.Job.Lease.ID)) // open where the order was on its way when the process asked
	x.redact(e.Lines)
	if transactions > 0 {
		e.Lines = append(e.Lines, jobs.LogLine{At: now, Text: fmt.Sprintf("the job left a transaction open (%d "+
			"deep): it was rolled back", transactions)})
		x.c.Logger.Warn("PHP job left a transaction open; it was rolled back", "event", "php.open_transaction",
			"queue", x.c.Queue,
			"type", e.Job.Job.Type, "id", e.Job.Job.ID, "uuid", e.Job.Job.UUID, "depth", transactions)
	}
	average := x.average.Load()
	if average == 0 {
		average = int64(e.Duration)
	}
	x.average.Store(max(average+(int64(e.Duration)-average)/8, 1))
	x.ends <- ending{e, x.written}
}

// abandoned settles the job that the dead process had in hand.
func (x *process) abandoned(how string) {
	if !x.sent || unread(x.in) > x.ahead.behind || x.last != nil && x.last.Job == nil {
		x.back <- *x.putDown()
		return
	}
	e := End{Outcome: Crashed, Delay: x.job.delayAfterCrash(), Exception: DiedInJob + how}
	if x.stops || x.why == "" && x.last != nil && x.last.Died == "" { // not the job's doing, or Laravel's own time-out
		e.Outcome, e.Exception = Released, how
	}
	x.c.Logger.Warn("PHP process died in a job", "event", "php.crashed", "queue", x.c.Queue, "type", x.job.Job.Type,
		"id", x.job.Job.ID,
		"uuid", x.job.Job.UUID, "attempt", x.job.Job.Attempt, "how", how)
	x.finish(e, 0)
}

// end is the decision as an End. A job that neither deleted nor released itself
// stays reserved in Laravel, until retry_after is over.
func (v *decision) end(lease time.Duration) End {
	switch v.As {
	case "delete":
		return End{Outcome: Deleted}
	case "fail":
		return End{Outcome: Failed, Exception: v.Exception}
	case "release":
		return End{Outcome: Released, Delay: time.Duration(v.Delay) * time.Second, Exception: v.Exception}
	}
	return End{Outcome: Released, Delay: lease, Exception: "the job ended and neither deleted nor released itself"}
}
