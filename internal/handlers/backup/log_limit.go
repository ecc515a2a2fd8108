package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
)

// limitEvery is how often the archived log is held to its limits between two prunes.
const limitEvery = time.Hour

// limit does so in this turn, where it is due.
func (t *logTurns) limit(ctx context.Context) {
	if now := t.c.Now(); now.Sub(t.limited) >= limitEvery {
		t.limited = now
		if err := t.limitLog(ctx); err != nil && ctx.Err() == nil {
			t.c.Logger.WarnContext(ctx, "archived log not held to its limit", "event", "backup.cleanup_failed",
				"error", err)
		}
		t.archiver.Forget() // what is at the places
	}
}

// limitLog removes the log above what it may take, and what no backup needs. Meanwhile
// no backup or restore may begin, so that is done only where something goes.
func (h *Handler) limitLog(ctx context.Context) error {
	var over []string
	var failed []error
	for name := range h.logPlaces() {
		n, err := h.surplusOfLog(ctx, name)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		} else if n > 0 {
			over = append(over, name)
		}
	}
	if len(over) == 0 {
		return errors.Join(failed...)
	}
	ctx, unlock, err := h.locks.Exclusive(ctx, "removing archived log above max_total")
	if errors.Is(err, lock.ErrBusy) { // it may read the log; a backup prunes at its end
		return errors.Join(failed...)
	}
	if err != nil {
		return errors.Join(append(failed, err)...)
	}
	defer unlock()
	for _, name := range over {
		all, err := h.List(ctx, name)
		if err == nil {
			err = allowed(h.pruneLog(ctx, name, all))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// surplusOfLog is how many segments would go at a destination while all its backups stay.
func (h *Handler) surplusOfLog(ctx context.Context, destination string) (int, error) {
	if h.c.Options.limitsOf(destination).MaxBytes <= 0 {
		return 0, nil
	}
	all, err := h.List(ctx, destination)
	if err != nil {
		return 0, err
	}
	limit, err := h.logLimit(ctx, destination, all)
	if err != nil {
		return 0, err
	}
	surplus, err := binlog.Surplus(ctx, h.logPlaces()[destination], basesOf(all), limit)
	return len(surplus), err
}

// LogBytes is what the archived log takes at each destination that has some. Where one
// cannot be asked, the error names it and the others are there.
func (h *Handler) LogBytes(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	if !h.HasLog() {
		return out, nil
	}
	var failed []error
	for name, place := range h.logPlaces() {
		bytes, err := binlog.Size(ctx, place)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		} else if bytes > 0 {
			out[name] = bytes
		}
	}
	return out, errors.Join(failed...)
}

// pruneLog removes what of the log none of the kept backups at a destination needs.
func (h *Handler) pruneLog(ctx context.Context, destination string, kept []catalog.Stored) error {
	place, has := h.logPlaces()[destination]
	if !has {
		return nil
	}
	limit, err := h.logLimit(ctx, destination, kept)
	if err != nil {
		return err
	}
	n, err := binlog.Prune(ctx, place, basesOf(kept), limit)
	if n > 0 {
		h.c.Logger.InfoContext(ctx, "archived log pruned", "event", "backup.log_pruned", "destination", destination,
			"segments", n)
	}
	return err
}

// logLimit is what the backups that stay leave of what all may take at a destination. The
// log behind the newest one that may be restored stays all the same. nil is no limit.
func (h *Handler) logLimit(ctx context.Context, destination string, kept []catalog.Stored) (*binlog.Limit, error) {
	most := h.c.Options.limitsOf(destination).MaxBytes
	newest := slices.IndexFunc(kept, func(b catalog.Stored) bool { return h.verifiedBase(b) })
	if most <= 0 || newest < 0 {
		return nil, nil
	}
	used, err := h.inRepository(ctx, destination)
	for _, b := range kept {
		used += b.Size
	}
	return &binlog.Limit{Bytes: most - used, Stays: basesOf(kept[newest : newest+1])[0]}, err
}
