package php

import (
	"os"
	"os/exec"
	"sync"
	"time"
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

	outdated <-chan struct{} // closed when its code is old
	leaves   bool            // it was asked to end, as it had no job
	retired  bool            // and no other takes its place

	hello, answer, alarm *time.Timer

	mu      sync.Mutex
	settled []int64 // rows whose end is written, and it does not know yet
	fault   error   // what was wrong with its messages
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// kill ends the process and all that its jobs have started.
func (x *process) kill(why string) {
	if x.why == "" {
		x.why = why
	}
	_ = killGroup(x.cmd.Process) // gone already
}

// written notes that the end of a job is in the tables: the process may forget it.
func (x *process) written(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settled = append(x.settled, id)
}
