package php

import "time"

// A process that runs short jobs has its next one in its pipe before it asks, so that it waits
// for nobody between two jobs. It may take it until a time that stands in the order: what it
// has not read then is another's, and it drops what it reads later. So a job that
// was sent ahead is in one of two places, and the kernel says which: in the pipe, or read by
// the process, which says at once whether it took it or was too late.
const (
	// sendBelow is how short jobs are, on average, of which the next is sent ahead.
	sendBelow = 20 * time.Millisecond
	// takenWithin is how long a process may take a job that was sent ahead. It is taken
	// back takeBackLater after that.
	takenWithin   = 50 * time.Millisecond
	takeBackLater = 20 * time.Millisecond
	// maxAhead is the longest order that is sent ahead, in bytes: a pipe takes it whole and at
	// once (PIPE_BUF). maxPayloadAhead spares to try with payloads that have no chance.
	maxAhead        = 4096
	maxPayloadAhead = 3500
)

// ahead is what a process was sent before it asked.
type ahead struct {
	job *Job // nil: nothing, or it was taken back
	// until is when it may be taken at the latest, by the clock of monotonic; it names the order, too.
	until time.Duration
	// inHand is until of the job in hand, which the process may still drop; 0 is that it does not.
	inHand time.Duration
	// behind is how many bytes are in the pipe behind the order of the job in hand, if the
	// process has read nothing since.
	behind int
	// dropped says that the process will read, and drop, what was taken back.
	dropped bool
	// timer comes when it is time to take back; armed says that it will.
	timer *time.Timer
	armed bool
}

// sendAhead sends the next job to a process that runs one.
func (x *process) sendAhead() {
	a := &x.ahead
	if x.job == nil || a.job != nil || a.dropped || !x.mayBeAhead() {
		return
	}
	j := x.nextToSend()
	if j == nil {
		return
	}
	o := orderOf(j)
	a.until = monotonic() + takenWithin
	o.Until = int64(a.until)
	x.mu.Lock()
	o.Settled = x.settled[:min(len(x.settled), 100)]
	data, err := o.frame()
	if err != nil || len(data) > maxAhead {
		x.mu.Unlock()
		x.putFirst(j)
		return
	}
	x.settled = x.settled[len(o.Settled):]
	x.mu.Unlock()
	x.note(x.journal.hand(j.Lease.ID, x.cmd.Process.Pid))
	a.job = j
	if !x.write(data) {
		return // the process is killed, and what it has is released
	}
	a.behind = len(data)
	if !a.armed {
		a.armed = true
		a.timer.Reset(takenWithin + takeBackLater)
	}
}

// mayBeAhead says whether the process will go on after its job, as far as is known here. One that is
// too many ends when it asks.
func (x *process) mayBeAhead() bool {
	return seesUnread && x.ran > 0 && !x.stops && !x.leaves && !closed(x.outdated) && !closed(x.stop) &&
		!closed(x.gone) && x.kept.Load() <= x.size.Load()
}

// took hears that the job that was sent ahead is the one in hand.
func (x *process) took(until time.Duration) {
	j := x.ahead.job
	if j == nil || x.ahead.until != until {
		x.kill("it took a job that it was not sent")
		return
	}
	x.note(x.journal.close(j.Lease.ID))
	x.begin(j, 0)
}

// begin makes the job that was sent ahead the one in hand, with nothing behind it in the pipe.
func (x *process) begin(j *Job, until time.Duration) {
	x.ahead.job, x.ahead.behind, x.ahead.inHand = nil, 0, until
	x.output.goesOn()
	x.take(j)
	if x.sent = true; !x.due.IsZero() {
		x.setAlarm()
	}
}

// late hears that the process has dropped a job that was sent ahead. It is put back, if it was not
// taken back before.
func (x *process) late(until time.Duration) {
	a := &x.ahead
	switch {
	case a.job != nil && a.until == until:
		x.putFirst(a.job)
		a.job, a.behind = nil, 0
	case x.job != nil && a.inHand == until: // it asked while the order was on its way, and still does
		x.output.goesNotOn()
		x.putFirst(x.putDown())
		x.ask()
	}
}

// ask notes that the process asks. An order that is on its way to it is the answer, if it does
// not come too late.
func (x *process) ask() {
	a := &x.ahead
	a.dropped = false
	if a.job != nil && x.job == nil {
		x.begin(a.job, a.until) // the journal keeps it until its end
		return
	}
	x.asks = true
	x.wanting.Add(1)
}

// takeBack takes a job back that the process has not read in time.
func (x *process) takeBack() {
	a := &x.ahead
	a.armed = false
	if a.job == nil {
		return
	}
	rest := a.until + takeBackLater - monotonic()
	if rest <= 0 {
		if unread(x.in) > 0 {
			j := a.job
			a.job, a.dropped = nil, true
			x.putFirst(j)
			wake(x.asked)
			return
		}
		rest = takeBackLater // it has read it: its word is on the way
	}
	a.armed = true
	a.timer.Reset(rest)
}
