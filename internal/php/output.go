package php

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The bounds of what a job prints: lines that it keeps, and characters of each.
const maxLines, maxLine = 1000, 2000

// output is a process's standard output and standard error.
type output struct {
	file *os.File
	now  func() time.Time

	mu      sync.Mutex // held while bytes are read: so that take has all that were there
	buffer  []byte
	rest    []byte // the beginning of a line
	long    bool   // the rest of a line that was cut is on its way
	lines   []jobs.LogLine
	taken   int // lines of this job that are no longer in lines: heartbeats have them
	dropped int
	// marked says that nextJob came: ended are the lines before it. held is what may be
	// its beginning.
	marked bool
	ended  []jobs.LogLine
	held   []byte
	// passed says that the lines before nextJob were taken, awaited that they were and
	// that it comes still.
	passed, awaited bool
}

// nextJob is printed between the lines of a job and those of the next by a process that
// does not wait between them.
const nextJob = "\x00cmsjobs: next job\x00\n"

// read collects lines until the pipe is closed.
func (o *output) read() {
	raw, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	// Read waits until there is something, and calls pull again.
	_ = raw.Read(func(fd uintptr) bool { return o.pull(int(fd)) })
}

// pull reads what is there; true when the pipe is at its end.
func (o *output) pull(fd int) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buffer == nil {
		o.buffer = make([]byte, 32<<10)
	}
	for {
		n, err := readNow(fd, o.buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return false
		case err != nil || n <= 0:
			return true
		}
		o.add(o.buffer[:n])
	}
}

// take returns the lines of a job, those that are still in the pipe included: a process
// prints before it says that it is done.
func (o *output) take() []jobs.LogLine {
	o.pullAll()
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := append(o.ended, o.cut()...)
	o.ended, o.marked, o.passed, o.awaited = nil, false, false, false
	return lines
}

// takeEnded returns the lines of a job whose process may have gone on with the next one:
// those before nextJob.
func (o *output) takeEnded() []jobs.LogLine {
	o.pullAll()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.marked {
		return o.cut()
	}
	lines := o.ended
	o.ended, o.marked, o.passed = nil, false, true
	return lines
}

// goesOn says that the process goes on by itself with its next job, of which nextJob
// has come or comes.
func (o *output) goesOn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.passed:
	case o.marked: // nothing but what children of the job before print can be before it
		o.lines, o.ended, o.marked = append(o.ended, o.lines...), nil, false
	default:
		o.awaited = true
	}
	o.passed = false
}

// goesNotOn takes goesOn back: the process waits for us.
func (o *output) goesNotOn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited = false
}

// pullAll reads what is there.
func (o *output) pullAll() {
	if raw, err := o.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { o.pull(int(fd)) }) // closed: nothing more comes
	}
}

// cut ends the last line and takes out all.
func (o *output) cut() []jobs.LogLine {
	o.rest, o.held = append(o.rest, o.held...), nil
	if len(o.rest) > 0 && !o.long {
		o.line(o.rest)
	}
	o.rest, o.long = nil, false
	lines := o.lines
	if o.dropped > 0 {
		lines = append(lines, jobs.LogLine{At: o.now(), Text: fmt.Sprintf("(%d more lines were dropped)", o.dropped)})
	}
	o.lines, o.taken, o.dropped = nil, 0, 0
	return lines
}

// add takes bytes apart into lines of the job in hand, and of the one before. No process
// is more than one job ahead: a second nextJob is a job's own doing.
func (o *output) add(data []byte) {
	if len(o.held) == 0 && bytes.IndexByte(data, nextJob[0]) < 0 {
		o.text(data)
		return
	}
	data, o.held = append(o.held, data...), nil
	for !o.marked {
		before, after, found := bytes.Cut(data, []byte(nextJob))
		if !found {
			break
		}
		o.text(before)
		if data = after; o.awaited {
			o.awaited = false
			continue
		}
		o.ended, o.marked = o.cut(), true
	}
	n := len(nextJob) - 1
	for n > 0 && !bytes.HasSuffix(data, []byte(nextJob[:n])) {
		n--
	}
	o.text(data[:len(data)-n])
	o.held = bytes.Clone(data[len(data)-n:])
}

// text takes text apart into lines. What is longer than a line may be is cut.
func (o *output) text(data []byte) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		part := data
		if end >= 0 {
			part = data[:end]
		}
		if !o.long {
			o.rest = append(o.rest, part[:min(len(part), 4*maxLine-len(o.rest))]...)
		}
		switch {
		case end >= 0:
			if !o.long {
				o.line(o.rest)
			}
			o.rest, o.long = o.rest[:0], false
			data = data[end+1:]
		case len(o.rest) >= 4*maxLine && !o.long:
			o.line(o.rest)
			o.rest, o.long = o.rest[:0], true
			return
		default:
			return
		}
	}
}

func (o *output) line(text []byte) {
	if o.taken+len(o.lines) >= maxLines {
		o.dropped++
		return
	}
	o.lines = append(o.lines, jobs.LogLine{At: o.now(), Text: jobs.PlainText(string(text), maxLine, '\t')})
}
