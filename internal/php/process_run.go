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
func (p *Pool) start(stop <-chan struct{}) (x *process, err error) {
	x = &process{Pool: p, listened: make(chan struct{}), gone: make(chan struct{}), changed: make(chan struct{}, 1),
		output: &output{now: p.c.Now}, stop: stop, outdated: p.generation(), startedAt: p.c.Now(),
		hello: time.NewTimer(helloWithin), answer: stoppedTimer(), alarm: stoppedTimer(), grace: stoppedTimer(),
		ahead: ahead{timer: stoppedTimer()}}
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
	p.born(x)
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

// live keeps the clocks of the process until it is gone. The error says what was wrong
// with it.
func (x *process) live() error {
	stop := x.stop
	for {
		offered, retire, outdated := x.wishes()
		select {
		case <-x.changed:
		case <-offered:
			x.do(func() { x.serve() })
		case <-x.answer.C:
			x.do(x.none)
		case <-x.alarm.C:
			x.do(x.overdue)
		case <-x.ahead.timer.C:
			x.do(x.takeBack)
		case <-x.hello.C:
			x.do(x.silent)
		case <-retire:
			x.do(x.retireNow)
		case <-outdated:
			x.do(x.leave)
		case <-stop:
			stop = nil
			x.do(x.finishUp)
		case <-x.grace.C:
			x.do(func() { x.kill(fmt.Sprintf("killed: it still ran %s after it was asked to stop", x.c.Grace)) })
		case <-x.gone:
			return x.end()
		}
	}
}

// do changes the process's state.
func (x *process) do(change func()) {
	x.state.Lock()
	defer x.state.Unlock()
	change()
}

// wishes are what a process that asks may get: a job, or that it is to end, because it is
// one too many or has old code. Any other process gets nothing.
func (x *process) wishes() (offered <-chan struct{}, retire, outdated <-chan struct{}) {
	x.state.Lock()
	defer x.state.Unlock()
	if !x.free() {
		return nil, nil, nil
	}
	if closed(x.outdated) {
		return nil, nil, x.outdated
	}
	return x.ready, x.retire, x.outdated
}

// free says whether the process may get a job, or be asked to end.
func (x *process) free() bool { return x.asks && x.job == nil && !x.stops && !x.leaves }

// serve hands a process that asks its next job, and sends the one after it ahead; false
// where the process gets none now.
func (x *process) serve() bool {
	for x.free() && !closed(x.outdated) && !closed(x.stop) && !closed(x.gone) {
		select {
		case <-x.retire: // before a job: a busy queue has always one
			x.retireNow()
			return false
		default:
		}
		j := x.nextJob()
		if j == nil {
			return false
		}
		x.hand(j)
	}
	x.sendAhead()
	return x.job != nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// silent ends a process that has not said hello in time.
func (x *process) silent() {
	if !x.known {
		x.kill("the process did not say hello: is the package cmsjobs/laravel installed on the site, " +
			"and found by \"php artisan package:discover\"?")
	}
}

// retireNow takes the word that the process is one too many.
func (x *process) retireNow() {
	x.retired = true
	x.leave()
}

// leave asks the process, which has no job, to end.
func (x *process) leave() {
	x.leaves = true
	_ = terminate(x.cmd.Process) // gone already
	x.none()
	x.grace.Reset(x.c.Grace)
}

// finishUp asks the process to end after its job.
func (x *process) finishUp() {
	x.stops = true
	_ = terminate(x.cmd.Process) // gone already
	x.none()
	x.grace.Reset(x.c.Grace)
}
