package php

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// start starts one process.
func (p *Pool) start() (x *process, err error) {
	x = &process{Pool: p, messages: make(chan *message), gone: make(chan struct{}), output: &output{now: p.c.Now},
		outdated: p.generation(), hello: time.NewTimer(helloWithin), answer: stoppedTimer(), alarm: stoppedTimer()}
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
	p.born(x.cmd.Process.Pid)
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

// live feeds the process until it is gone. The error says what was wrong with it.
func (x *process) live(ctx context.Context) error {
	stop, grace := ctx.Done(), stoppedTimer()
	defer grace.Stop()
	for {
		offered, retire, outdated := x.wishes()
		if closed(outdated) {
			x.leave(grace)
			continue
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
		case <-retire:
			x.retired = true
			x.leave(grace)
		case <-outdated:
			x.leave(grace)
		case <-stop:
			stop, x.stops = nil, true
			_ = terminate(x.cmd.Process) // gone already
			x.none()
			grace.Reset(x.c.Grace)
		case <-grace.C:
			x.kill(fmt.Sprintf("killed: it still ran %s after it was asked to stop", x.c.Grace))
		case <-x.gone:
			return x.end()
		}
	}
}

// wishes are what a process that asks may get: a job, or that it is to end, because it is
// one too many or has old code. Any other process gets nothing.
func (x *process) wishes() (offered <-chan *Job, retire, outdated <-chan struct{}) {
	if !x.asks || x.job != nil || x.stops || x.leaves {
		return nil, nil, nil
	}
	return x.jobs, x.retire, x.outdated
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leave asks the process, which has no job, to end.
func (x *process) leave(grace *time.Timer) {
	x.leaves = true
	_ = terminate(x.cmd.Process) // gone already
	x.none()
	grace.Reset(x.c.Grace)
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
		x.c.Logger.Info("output of a PHP process outside of jobs", "event", "php.output", "queue", x.c.Queue,
			"line", l.Text)
	}
	x.note(x.journal.close(j.Lease.ID)) // from here on it may have begun
	x.job, x.began, x.sent = j, x.c.Now(), false
	x.busy.Add(1)
	x.sent = x.tell(&o)
	if limit := x.limit(j); limit > 0 {
		x.alarm.Reset(limit + killAfter)
	}
}
