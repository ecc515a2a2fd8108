package php

import (
	"os"
	"os/exec"
	"sync"
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
	// writeWithin is how long a process that asks may take to read a job; half of it at
	// least, as the deadline is not set again for each.
	writeWithin = 10 * time.Second
	// protocol is the version of the frames; the package on the site says its own.
	protocol = 2
)

// process is one PHP process.
type process struct {
	*Pool
	cmd      *exec.Cmd
	in, out  *os.File // its descriptors 3 and 4, our ends
	output   *output
	received []byte        // and not taken apart yet: listen's, then finalMessage's
	listened chan struct{} // closed when listen has returned
	gone     chan struct{}
	// startedAt is when the process was started.
	startedAt time.Time
	changed   chan struct{} // it began to ask, and there is no job for it

	// state is held by who hears a message or answers one: most of the time listen,
	// which hands out the next job itself; live has the clocks and what is rare. The job in
	// hand and ran are changed under mu, too, so that heartbeats wait for no write.
	state sync.Mutex
	job   *Job // in hand
	began time.Time
	due   time.Time // when the job in hand is killed; zero is never
	ran   int
	sent  bool // the job was written to the pipe whole
	taken bool // nothing was printed since the last job, as far as its end knows
	asks  bool
	ahead ahead
	known bool     // it has said hello
	last  *message // bye or died
	why   string   // why we killed it
	stops bool     // the pool does

	stop     <-chan struct{} // closed when the pool stops
	outdated <-chan struct{} // closed when its code is old
	leaves   bool            // it was asked to end, as it had no job
	retired  bool            // and no other takes its place

	hello, answer, alarm, grace *time.Timer

	alarmAt    time.Time // when alarm comes; zero is never
	writeUntil time.Time // the deadline of writes

	mu       sync.Mutex
	progress *jobs.Progress // of the job in hand, which said it last; nil: nothing
	settled  []int64        // rows whose end is written, and it does not know yet
	fault    error          // what was wrong with its messages
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
