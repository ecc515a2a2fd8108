package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// ErrBusy says that another backup, restore or prune runs, somewhere in the fleet.
var ErrBusy = errors.New("another backup is running")

const (
	// lockName is held by backups, restores and prunes: one at a time.
	lockName = "backup"
	// busyDelay is after what time a job asks again.
	busyDelay = time.Minute
)

// lock keeps a second backup, restore or prune out until unlock is called.
// Work uses the context that it returns, which ends when the lock is lost.
func (h *Handler) lock(ctx context.Context, purpose string) (held context.Context, unlock func(), err error) {
	held, l, err := h.locks.Acquire(ctx, lock.Request{Name: lockName, Purpose: purpose, Durable: true})
	var by *lock.HeldError
	switch {
	case errors.As(err, &by):
		return nil, nil, fmt.Errorf("%w: %w", ErrBusy, err)
	case err != nil:
		return nil, nil, err
	}
	return held, func() { l.Release(ctx) }, nil
}
