package php

import (
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// listen reads what the process says until the pipe ends, or end takes over.
func (x *process) listen() {
	defer close(x.listened)
	chunk := make([]byte, 32<<10)
	for {
		n, err := x.out.Read(chunk)
		x.received = append(x.received, chunk[:n]...)
		if !x.parse(x.heard) || err != nil {
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

// heard takes in a message of a process that lives, and hands it the next job if it
// asks: where one is claimed ahead, nobody else is woken for that.
func (x *process) heard(m *message) {
	x.state.Lock()
	defer x.state.Unlock()
	x.hear(m)
	if !m.More && m.Took == 0 && m.Late == 0 || x.serve() || !x.asks {
		return
	}
	x.taken = false
	x.answer.Reset(answerWithin)
	wake(x.changed)
	wake(x.asked)
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
	if m.Progress != nil && x.job != nil {
		x.goesOn(m.Progress)
	}
	if v := m.Done; v != nil && x.job != nil && v.ID == x.job.Job.ID &&
		(v.As != "nothing" || m.Bye == nil && m.Died == "") {
		x.finish(v.end(x.c.Lease), v.Transactions)
	}
	if m.Bye != nil || m.Died != "" {
		x.last = m
	}
	x.hearOfNext(m)
}

// hearOfNext takes in what a message says of the next job.
func (x *process) hearOfNext(m *message) {
	if m.Late != 0 {
		x.late(time.Duration(m.Late))
	}
	if m.Took != 0 {
		x.took(time.Duration(m.Took))
	}
	if m.More && !x.asks {
		x.ask()
	}
}

// maxNote is how many characters the note of a progress has.
const maxNote = 200

// goesOn notes how far the job in hand is.
func (x *process) goesOn(said *jobs.Progress) {
	p := &jobs.Progress{Done: max(said.Done, 0), Total: max(said.Total, 0),
		Note: x.c.Redact(jobs.PlainText(said.Note, maxNote))}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.progress = p
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
	if err != nil {
		x.kill(err.Error())
		return false
	}
	return x.write(data)
}

// write writes an order.
func (x *process) write(data []byte) bool {
	if now := x.c.Now(); x.writeUntil.Sub(now) < writeWithin/2 {
		x.writeUntil = now.Add(writeWithin)
		_ = x.in.SetWriteDeadline(x.writeUntil) // pipes have deadlines
	}
	_, err := x.in.Write(data)
	if err != nil {
		x.kill(fmt.Sprintf("it does not read: %v", err))
	}
	return err == nil
}

// none answers a process that asks: there is no job now.
func (x *process) none() {
	if x.asks {
		x.tell(&order{})
	}
}
