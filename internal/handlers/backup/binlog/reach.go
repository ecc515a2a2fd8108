package binlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Window is a row of moments, each of which can be restored.
type Window struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Reach says which moments can be restored from what a place has.
type Reach struct {
	Windows []Window `json:"windows,omitempty"` // oldest first
	// Missing says why the newest backup leads to no later moments, or not to the end of
	// the archive; "" where it does.
	Missing string `json:"missing,omitempty"`
	Bytes   int64  `json:"bytes"` // that the archive takes
}

// ReachOf lists a place and says how far one can go.
func ReachOf(ctx context.Context, place storage.Store, bases []Base) (Reach, error) {
	all, err := list(ctx, place)
	return reach(all, bases), err
}

// ChainOf lists a place and follows its archive from a backup.
func ChainOf(ctx context.Context, place storage.Store, b Base) (Chain, error) {
	all, err := list(ctx, place)
	return chainFrom(all, b.Position, b.Snapshot), err
}

func reach(all []Segment, bases []Base) Reach {
	var r Reach
	r.Bytes = size(all)
	bases = slices.SortedFunc(slices.Values(bases), func(a, b Base) int { return a.Snapshot.Compare(b.Snapshot) })
	for _, b := range bases {
		c := chainFrom(all, b.Position, b.Snapshot)
		r.Missing = c.Missing
		if r.Missing == "" && len(all) > 0 && c.End.File != all[len(all)-1].File {
			r.Missing = fmt.Sprintf("the server began its log again after %s:%d", c.End.Name, c.End.Offset)
		}
		if c.Missing != "" && len(c.Segments) == 0 && c.Until.IsZero() {
			continue
		}
		if c.Until.Before(b.Snapshot) { // nothing was written since
			c.Until = b.Snapshot.Truncate(time.Second)
		}
		if n := len(r.Windows); n > 0 && !b.Snapshot.Truncate(time.Second).After(r.Windows[n-1].Until) {
			if c.Until.After(r.Windows[n-1].Until) {
				r.Windows[n-1].Until = c.Until
			}
			continue
		}
		r.Windows = append(r.Windows, Window{b.Snapshot, c.Until})
	}
	return r
}

// Limit bounds what the archived log may take at a place.
type Limit struct {
	Bytes int64
	// Stays is the base whose log stays whatever it takes, with that of the later ones.
	Stays Base
}

// Surplus are the segments that none of the kept backups needs. Where the others take more
// than a limit, the moments after the oldest backups go too.
func Surplus(ctx context.Context, place storage.Store, kept []Base, limit *Limit) ([]Segment, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	all, err := list(ctx, place)
	if err != nil {
		return nil, err
	}
	if limit != nil {
		kept = limit.fitting(all, kept)
	}
	return unneeded(all, kept), nil
}

// Prune removes the surplus and says how many segments that were.
func Prune(ctx context.Context, place storage.Store, kept []Base, limit *Limit) (n int, err error) {
	surplus, err := Surplus(ctx, place, kept, limit)
	if err != nil {
		return 0, err
	}
	for _, s := range surplus {
		if err := place.Delete(ctx, s.key()); err != nil {
			return n, fmt.Errorf("removing %s: %w", s.key(), err)
		}
		n++
	}
	return n, nil
}

// Size is what the archive takes at a place.
func Size(ctx context.Context, place storage.Store) (int64, error) {
	all, err := list(ctx, place)
	return size(all), err
}

// fitting leaves out the oldest bases, until the log of the others takes no more than the
// limit.
func (l *Limit) fitting(all []Segment, kept []Base) []Base {
	kept = slices.SortedFunc(slices.Values(kept), func(a, b Base) int { return a.Snapshot.Compare(b.Snapshot) })
	whole := size(all)
	for len(kept) > 1 && kept[0].Snapshot.Before(l.Stays.Snapshot) && whole-size(unneeded(all, kept)) > l.Bytes {
		kept = kept[1:]
	}
	return kept
}

func size(all []Segment) (bytes int64) {
	for _, s := range all {
		bytes += s.Size
	}
	return bytes
}
