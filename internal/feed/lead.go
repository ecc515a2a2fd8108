package feed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// leadEvery is how often a process that does not lead tries to.
const leadEvery = time.Second

// lead waits until this process leads those of its host that share dir. release
// ends that. An error says that it cannot be found out who leads.
func lead(ctx context.Context, dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for wake-ups: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "feed.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the change feed: %w", err)
	}
	for tryLock(f) != nil {
		select {
		case <-ctx.Done():
			_ = f.Close() // nothing was written
			return nil, ctx.Err()
		case <-time.After(leadEvery):
		}
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}
