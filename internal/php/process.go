package php

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

const (
	// helloWithin is how long a process may take to start, answerWithin how long
	// one that asks waits before it hears that there is nothing, so that Laravel's
	// loop sees restarts, signals and maintenance mode.
	helloWithin  = time.Minute
	answerWithin = time.Second
	// killAfter is how much longer than its time-out a job may run.
	killAfter = time.Second
	// writeWithin is how long a process that asks may take to read a job.
	writeWithin = 10 * time.Second
	// protocol is the version of the frames; the package on the site says its own.
	protocol = 1
)

// process is one PHP process.
type process struct {
	*Pool
	cmd      *exec.Cmd
	in, out  *os.File // its descriptors 3 and 4, our ends
	output   *output
	messages chan *message
	received []byte // and not taken apart yet: listen's, then finalMessage'
	gone     chan struct{}

	job   *Job // in hand
	began time.Time
	sent  bool // the job was written to the pipe whole
	asks  bool
	ran   int
	known bool     // it has said hello
	last  *message // bye or died
	why   string   // why we killed it
	stops bool     // the pool does

	hello, answer, alarm *time.Timer

	mu      sync.Mutex
	settled []int64 // rows whose end is written, and it does not know yet
	fault   error   // what was wrong with its messages
}

// keep keeps one process running until ctx ends.
func (p *Pool) keep(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		began := p.c.Now()
		x, err := p.start()
		if err == nil {
			err = x.live(ctx)
			if x.ran > 0 {
				failures = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil && (x.ran > 0 || p.c.Now().Sub(began) > time.Second) {
			failures = 0
			continue
		}
		failures++
		pause := min(100*time.Millisecond<<min(failures-1, 10), 10*time.Second)
		p.c.Logger.Warn("PHP process ended; another one is started", "event", "php.process_ended", "queue", p.c.Queue,
			"in", pause, "error", err)
		wait(ctx, pause)
	}
}

// start starts one process.
func (p *Pool) start() (x *process, err error) {
	x = &process{Pool: p, messages: make(chan *message), gone: make(chan struct{}), output: &output{now: p.c.Now},
		hello: time.NewTimer(helloWithin), answer: stoppedTimer(), alarm: stoppedTimer()}
	var ours, theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the process has its own
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("making a pipe for a PHP process: %w", err)
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	x.in, x.out, x.output.file = ours[0], ours[1], ours[2]
	// No context ends it: it is asked to end (live), and lets its job end.
	x.cmd = exec.CommandContext(context.Background(), p.c.Command[0], p.c.Command[1:]...)
	x.cmd.Dir, x.cmd.ExtraFiles = p.c.Dir, []*os.File{theirs[0], theirs[1]}
	x.cmd.Stdout, x.cmd.Stderr = theirs[2], theirs[2]
	x.cmd.Env = append(withoutOurs(x.cmd.Environ()), "CMSJOBS_PIPE="+p.c.Connection)
	ownGroup(x.cmd)
	if err := x.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting PHP: %w", err)
	}
	go x.output.read()
	go x.listen()
	go func() {
		_ = x.cmd.Wait() // ProcessState says how it ended
		close(x.gone)
	}()
	return x, nil
}

// withoutOurs leaves our own settings out of an environment: jobs of PHP need
// none of them, and some are secrets.
func withoutOurs(environ []string) []string {
	kept := environ[:0]
	for _, v := range environ {
		if !strings.HasPrefix(v, "CMSJOBS_") {
			kept = append(kept, v)
		}
	}
	return kept
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// listen reads what the process says until the pipe ends, or end takes over.
func (x *process) listen() {
	defer close(x.messages)
	chunk := make([]byte, 32<<10)
	for {
		n, err := x.out.Read(chunk)
		x.received = append(x.received, chunk[:n]...)
		if !x.parse(func(m *message) { x.messages <- m }) || err != nil {
			return
		}
	}
}

// parse takes apart what was received; false where that is no message.
func (x *process) parse(each func(*message)) bool {
	for {
		m, rest, err := nextMessage(x.received)
		if err != nil {
			x.mu.Lock()
			x.fault = err
			x.mu.Unlock()
			_ = killGroup(x.cmd.Process) // gone already, or dying
			return false
		}
		if m == nil {
			return true
		}
		x.received = rest
		each(m)
	}
}

// finalMessage hears what a dead process has said. It does not wait for the end of the
// pipe, which a child of a job may hold open, nor for time: what a process has written
// is in the pipe when it is gone.
func (x *process) finalMessage() {
	_ = x.out.SetReadDeadline(time.Unix(1, 0)) // listen returns
	for x.messages != nil {
		m, open := <-x.messages
		if !open {
			break
		}
		x.hear(m)
	}
	raw, err := x.out.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // closed: nothing is there
		chunk := make([]byte, 32<<10)
		for len(x.received) <= 2*maxFrame {
			n, err := readNow(int(fd), chunk)
			if n > 0 {
				x.received = append(x.received, chunk[:n]...)
			} else if !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	x.parse(x.hear)
}

// live feeds the process until it is gone. The error says what was wrong with it.
func (x *process) live(ctx context.Context) error {
	stop, grace := ctx.Done(), stoppedTimer()
	defer grace.Stop()
	for {
		var offered chan *Job
		if x.asks && x.job == nil && !x.stops {
			offered = x.jobs
		}
		select {
		case m, open := <-x.messages:
			if !open {
				x.messages = nil
			} else {
				x.hear(m)
			}
		case j := <-offered:
			x.hand(j)
		case <-x.answer.C:
			x.none()
		case <-x.alarm.C:
			x.kill("killed: it went on after its time-out")
		case <-x.hello.C:
			x.kill("the process did not say hello: is the package cmsjobs/laravel installed on the site, " +
				"and found by \"php artisan package:discover\"?")
		case <-stop:
			stop, x.stops = nil, true
			_ = terminate(x.cmd.Process) // gone already
			x.none()
			grace.Reset(x.c.Grace)
		case <-grace.C:
			x.kill(fmt.Sprintf("killed: it still ran %s after the service was asked to stop", x.c.Grace))
		case <-x.gone:
			return x.end()
		}
	}
}

// kill ends the process and all that its jobs have started.
func (x *process) kill(why string) {
	if x.why == "" {
		x.why = why
	}
	_ = killGroup(x.cmd.Process) // gone already
}

// hear takes in one message.
func (x *process) hear(m *message) {
	if m.Hello != 0 {
		x.hello.Stop()
		if x.known = m.Hello == protocol; !x.known {
			x.kill(fmt.Sprintf("the package cmsjobs/laravel on the site speaks version %d of the protocol, this "+
				"program %d: update the older one", m.Hello, protocol))
		}
	}
	if v := m.Done; v != nil && x.job != nil && v.ID == x.job.Job.ID && (v.As != "nothing" || m.More) {
		x.finish(v.end(x.c.Lease), v.Transactions)
	}
	if m.Bye != nil || m.Died != "" {
		x.last = m
	}
	if m.More && !x.asks {
		x.asks = true
		x.wanting.Add(1)
		x.answer.Reset(answerWithin)
		select {
		case x.asked <- struct{}{}:
		default:
		}
	}
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

// hand gives the process, which asks, a job.
func (x *process) hand(j *Job) {
	o := order{ID: j.Job.ID, Queue: j.Job.Queue, Attempts: j.Job.Attempt, Payload: string(j.Payload),
		Crash: j.LastCrash}
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
	for _, l := range x.output.take() {
		x.c.Logger.Info("output of a PHP process outside of jobs", "event", "php.output", "queue", x.c.Queue, "line",
			l.Text)
	}
	x.note(x.journal.close(j.Lease.ID)) // from here on it may have begun
	x.job, x.began, x.sent = j, x.c.Now(), false
	x.busy.Add(1)
	x.sent = x.tell(&o)
	if limit := x.limit(j); limit > 0 {
		x.alarm.Reset(limit + killAfter)
	}
}

// limit is the job's time-out; 0 is none.
func (x *process) limit(j *Job) time.Duration {
	if j.NoTimeout || j.Job.Timeout > 0 {
		return j.Job.Timeout
	}
	return x.c.Timeout
}

// refuse fails a job without running it.
func (x *process) refuse(j *Job, why string) {
	x.note(x.journal.close(j.Lease.ID))
	x.ends <- ending{End{Job: *j, Outcome: Failed, Exception: why, Worker: x.c.Worker}, x}
}

// none answers a process that asks: there is no job now.
func (x *process) none() {
	if x.asks {
		x.tell(&order{})
	}
}

// tell answers a process that asks.
func (x *process) tell(o *order) bool {
	x.asks = false
	x.wanting.Add(-1)
	x.answer.Stop()
	x.mu.Lock()
	o.Settled, x.settled = x.settled, nil
	x.mu.Unlock()
	data, err := o.frame()
	if err == nil {
		_ = x.in.SetWriteDeadline(time.Now().Add(writeWithin)) // pipes have deadlines
		_, err = x.in.Write(data)
	}
	if err != nil {
		x.kill(fmt.Sprintf("it does not read: %v", err))
	}
	return err == nil
}

// written notes that the end of a job is in the tables: the process may forget it.
func (x *process) written(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settled = append(x.settled, id)
}

// finish ends the job in hand.
func (x *process) finish(e End, transactions int) {
	e.Job, e.Worker, e.Lines = *x.job, x.c.Worker, x.output.take()
	for i := range e.Lines {
		e.Lines[i].Text = x.c.Redact(e.Lines[i].Text)
	}
	now := x.c.Now()
	e.Duration, e.Wait = now.Sub(x.began), max(x.began.Sub(x.job.Job.RunAt), 0)
	if transactions > 0 {
		e.Lines = append(e.Lines, jobs.LogLine{At: now, Text: fmt.Sprintf("the job left a transaction open (%d "+
			"deep): it was rolled back", transactions)})
		x.c.Logger.Warn("PHP job left a transaction open; it was rolled back", "event", "php.open_transaction",
			"queue", x.c.Queue,
			"type", e.Job.Job.Type, "id", e.Job.Job.ID, "uuid", e.Job.Job.UUID, "depth", transactions)
	}
	x.job = nil
	x.alarm.Stop()
	x.busy.Add(-1)
	x.ran++
	average := x.average.Load()
	if average == 0 {
		average = int64(e.Duration)
	}
	x.average.Store(max(average+(int64(e.Duration)-average)/8, 1))
	x.ends <- ending{e, x}
}

// end takes in what the dead process has said, settles the job in its hands and
// says what was wrong with the process.
func (x *process) end() error {
	x.finalMessage()
	for _, t := range []*time.Timer{x.hello, x.answer, x.alarm} {
		t.Stop()
	}
	if x.asks {
		x.wanting.Add(-1)
	}
	how := x.how()
	if x.job != nil {
		x.abandoned(how)
	}
	var err error
	if how != "" && !x.stops {
		err = errors.New(how)
		if lines := x.output.take(); len(lines) > 0 {
			last := lines[max(len(lines)-5, 0):]
			texts := make([]string, len(last))
			for i, l := range last {
				texts[i] = l.Text
			}
			err = fmt.Errorf("%s; it printed: %s", how, strings.Join(texts, " | "))
		}
	}
	for _, f := range []*os.File{x.in, x.out, x.output.file} {
		_ = f.Close() // nothing is in it that anybody wants
	}
	return err
}

// how says how the process ended; "" is in order.
func (x *process) how() string {
	x.mu.Lock()
	fault := x.fault
	x.mu.Unlock()
	switch {
	case fault != nil:
		return fault.Error()
	case x.why != "":
		return x.why
	case x.last != nil && x.last.Died != "":
		return x.last.Died
	case x.last != nil && x.job == nil:
		return "" // Laravel's worker stopped by itself: --max-jobs, --memory, queue:restart
	case x.last != nil:
		return "Laravel ended the process: the job ran into its time-out"
	}
	return x.cmd.ProcessState.String()
}

// abandoned settles the job that the dead process had in hand.
func (x *process) abandoned(how string) {
	if !x.sent || unread(x.in) > 0 || x.last != nil && x.last.Job == nil {
		j := *x.job
		x.job = nil
		x.busy.Add(-1)
		x.back <- j
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
