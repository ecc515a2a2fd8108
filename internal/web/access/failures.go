package access

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// failureWindow is the time in which one address gets one entry of the audit
// log for each action that failed before anybody was known, and one that counts
// the others. perWindow bounds the entries of all addresses together.
const (
	failureWindow = time.Minute
	perWindow     = 30
)

// Failures writes what strangers tried into the audit log, bounded: each
// process writes at most 2 × perWindow + 2 entries a minute. It is safe for
// concurrent use.
type Failures struct {
	store *Store

	mu      sync.Mutex
	began   time.Time
	windows map[string]*failureCount
	others  int // of addresses that got no separate entry
}

type failureCount struct {
	first AuditEntry
	more  int
}

// NewFailures returns an empty count.
func NewFailures(store *Store) *Failures {
	return &Failures{store: store, windows: map[string]*failureCount{}}
}

// Record takes one action that failed. It is written at once, or counted.
func (f *Failures) Record(ctx context.Context, d AuditEntry) error {
	now := f.store.now()
	key := Network(d.Address) + " " + d.Action
	f.mu.Lock()
	var due []AuditEntry
	if now.Sub(f.began) >= failureWindow {
		due = f.take()
		f.began = now
	}
	switch count, known := f.windows[key]; {
	case known:
		count.more++
	case len(f.windows) < perWindow:
		f.windows[key] = &failureCount{first: d}
		due = append(due, d)
	default:
		f.others++
	}
	f.mu.Unlock()
	return f.write(ctx, due)
}

// Flush writes what was counted and not written: at the end of the process.
func (f *Failures) Flush(ctx context.Context) error {
	f.mu.Lock()
	due := f.take()
	f.mu.Unlock()
	return f.write(ctx, due)
}

// take ends the window and returns the entries that count.
func (f *Failures) take() (due []AuditEntry) {
	for _, count := range f.windows {
		if count.more > 0 {
			d := count.first
			d.Target, d.Detail = "", fmt.Sprintf("%d more within a minute from this address", count.more)
			due = append(due, d)
		}
	}
	if f.others > 0 {
		due = append(due, AuditEntry{Action: "session.create", Status: 401,
			Detail: fmt.Sprintf("%d more within a minute from other addresses", f.others)})
	}
	f.windows, f.others = map[string]*failureCount{}, 0
	return due
}

func (f *Failures) write(ctx context.Context, due []AuditEntry) error {
	for _, d := range due {
		if err := f.store.Record(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
