package php

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// end takes in what the dead process has said, settles the job in its hands and
// says what was wrong with the process.
func (x *process) end() error {
	x.finalMessage()
	for _, t := range []*time.Timer{x.hello, x.answer, x.alarm, x.grace, x.ahead.timer} {
		t.Stop()
	}
	if x.asks {
		x.wanting.Add(-1)
	}
	x.dead(x)
	how := x.how()
	if x.job != nil {
		x.abandoned(how)
	}
	if j := x.ahead.job; j != nil { // it has not begun, or it would have said so
		x.back <- *j
	}
	var err error
	if how != "" && !x.stops && !x.leaves {
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

// finalMessage hears what a dead process has said. It does not wait for the end of the
// pipe, which a child of a job may hold open, nor for time: what a process has written
// is in the pipe when it is gone.
func (x *process) finalMessage() {
	_ = x.out.SetReadDeadline(time.Unix(1, 0)) // listen returns
	if x.listened != nil {
		<-x.listened
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
