package php

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A claim counts an attempt, and jobs are claimed ahead. If this process is killed,
// those that were not handed out would have an attempt less without ever having
// run: with tries = 1 Laravel would fail them. So a file on this host says which
// are not handed out yet, and the next pool releases them uncounted. A job that was
// just being written to a process may have reached it: it is released when that
// process has ended, which writes the outcome of what it ran.
//
// The file outlives this process, not the host: what a power cut finds claimed
// ahead has lost that attempt.

// journal is the file of one pool. Its records are appended: a lease that is not
// handed out, the process that it is being written to, or its end.
type journal struct {
	mu   sync.Mutex
	file *os.File          // nil: as above
	open map[int64]pending // nil: no journal
	size int64
}

// pending is a lease that is not handed out, and the process that its job is just being
// written to; 0 is none.
type pending struct {
	jobs.Lease
	pid int
}

// The kinds of records, and the length of one: kind, id, attempt or pid, reserved_at.
const (
	recordAhead  = 'a'
	recordHanded = 'h'
	recordClosed = 'c'
	recordSize   = 25
	// compactAt is at which length a journal without open leases begins again.
	compactAt = 1 << 20
)

// openJournal makes the file of a new pool in dir; no dir is no journal.
func openJournal(dir, queue string) (*journal, error) {
	if dir == "" {
		return new(journal), nil
	}
	j := &journal{open: map[int64]pending{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the journal: %w", err)
	}
	for range 10 {
		f, err := os.CreateTemp(dir, journalName(queue))
		if err != nil {
			return nil, fmt.Errorf("making the journal: %w", err)
		}
		if lockFile(f) == nil {
			j.file = f
			return j, nil
		}
		_ = f.Close() // another pool found it first, and removes it
	}
	return nil, errors.New("making the journal: its file cannot be locked")
}

// journalName is the pattern of the files of a queue's pools.
func journalName(queue string) string { return fmt.Sprintf("php-%x-*.ahead", queue) }

// add notes leases that are not handed out.
func (j *journal) add(leases []jobs.Lease) error {
	if j.open == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	data := make([]byte, 0, recordSize*len(leases))
	for _, l := range leases {
		p := pending{Lease: l, pid: j.open[l.ID].pid}
		j.open[l.ID] = p
		if data = appendRecord(data, recordAhead, l); p.pid != 0 {
			data = appendHanded(data, l.ID, p.pid)
		}
	}
	return j.write(data)
}

// renewed notes the new leases of rows that are not handed out.
func (j *journal) renewed(leases []jobs.Lease) error {
	j.mu.Lock()
	var still []jobs.Lease
	for _, l := range leases {
		if _, open := j.open[l.ID]; open {
			still = append(still, l)
		}
	}
	j.mu.Unlock()
	return j.add(still)
}

// hand notes that a job is being written to a process.
func (j *journal) hand(id int64, pid int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, open := j.open[id]
	if !open {
		return nil
	}
	p.pid = pid
	j.open[id] = p
	return j.write(appendHanded(nil, id, pid))
}

// has says whether a row is claimed and not handed out.
func (j *journal) has(id int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, open := j.open[id]
	return open
}

// close notes that a row is handed out, or released.
func (j *journal) close(id int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, open := j.open[id]; !open {
		return nil
	}
	delete(j.open, id)
	return j.write(appendRecord(nil, recordClosed, jobs.Lease{ID: id}))
}

func (j *journal) write(data []byte) error {
	if j.file == nil || len(data) == 0 {
		return nil
	}
	n, err := j.file.Write(data)
	if j.size += int64(n); err == nil && len(j.open) == 0 && j.size > compactAt {
		if err = j.file.Truncate(0); err == nil {
			_, err = j.file.Seek(0, 0)
			j.size = 0
		}
	}
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

// remove ends the journal of a pool that has released everything.
func (j *journal) remove() error {
	if j.file == nil {
		return nil
	}
	return errors.Join(os.Remove(j.file.Name()), j.file.Close())
}

func appendRecord(data []byte, kind byte, l jobs.Lease) []byte {
	data = binary.BigEndian.AppendUint64(append(data, kind), uint64(l.ID))
	data = binary.BigEndian.AppendUint64(data, uint64(l.Attempt))
	return binary.BigEndian.AppendUint64(data, uint64(l.ReservedAt))
}

func appendHanded(data []byte, id int64, pid int) []byte {
	return appendRecord(data, recordHanded, jobs.Lease{ID: id, Attempt: pid})
}

// readJournal is what a journal says was not handed out. A record that was cut off
// is none.
func readJournal(data []byte) map[int64]pending {
	open := map[int64]pending{}
	for ; len(data) >= recordSize; data = data[recordSize:] {
		number := func(i int) int64 { return int64(binary.BigEndian.Uint64(data[1+8*i:])) }
		id := number(0)
		switch p, there := open[id]; {
		case data[0] == recordAhead:
			open[id] = pending{Lease: jobs.Lease{ID: id, Attempt: int(number(1)), ReservedAt: number(2)}}
		case data[0] == recordHanded && there:
			p.pid = int(number(1))
			open[id] = p
		default:
			delete(open, id)
		}
	}
	return open
}
