package conditions

import (
	"sync"
	"time"
)

// Writes remembers of each kind of write (claim, settle, heartbeat) whether
// the last one succeeded. It is safe for concurrent use.
type Writes struct {
	now func() time.Time

	mu     sync.Mutex
	failed map[string]failedWrite // by type; none where the last one succeeded
}

type failedWrite struct {
	since, last time.Time
	err         error
}

// writeForgotten is when a failed write counts no more that nobody repeats.
const writeForgotten = 2 * time.Minute

// NewWrites returns an empty memory.
func NewWrites(now func() time.Time) *Writes {
	return &Writes{now: now, failed: map[string]failedWrite{}}
}

// Note tells how a write ended.
func (w *Writes) Note(jobType string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.failed, jobType)
		return
	}
	f, failing := w.failed[jobType]
	if !failing {
		f.since = w.now()
	}
	f.last, f.err = w.now(), err
	w.failed[jobType] = f
}

// failing are the types of writes that fail, with since when and why.
func (w *Writes) failing() map[string]failedWrite {
	list := map[string]failedWrite{}
	if w == nil {
		return list
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for jobType, f := range w.failed {
		if w.now().Sub(f.last) < writeForgotten {
			list[jobType] = f
		}
	}
	return list
}
