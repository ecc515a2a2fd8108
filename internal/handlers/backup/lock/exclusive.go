package lock

import (
	"context"
	"errors"
	"fmt"
)

// ErrBusy says that another backup, restore or prune runs, somewhere in the fleet.
var ErrBusy = errors.New("another backup is running")

// exclusive is held by backups, restores and prunes: one at a time.
const exclusive = "backup"

// Exclusive keeps a second backup, restore or prune out until unlock is called.
// Work uses the context that it returns, which ends when the lock is lost.
func (t *Table) Exclusive(ctx context.Context, purpose string) (held context.Context, unlock func(), err error) {
	held, l, err := t.Acquire(ctx, Request{Name: exclusive, Purpose: purpose, Durable: true})
	var by *HeldError
	switch {
	case errors.As(err, &by):
		return nil, nil, fmt.Errorf("%w: %w", ErrBusy, err)
	case err != nil:
		return nil, nil, err
	}
	return held, func() { l.Release(ctx) }, nil
}

// Busy says whether a backup, restore or prune runs.
func (t *Table) Busy(ctx context.Context) (bool, error) { return t.Held(ctx, exclusive) }
