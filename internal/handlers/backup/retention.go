package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Retention says which good backups stay at each destination. A backup that
// any rule keeps stays; MaxBytes then removes the oldest until the rest fits.
// The newest good one stays whatever the rules say.
type Retention struct {
	// Keep is how many of the newest stay; 7 when nothing is set. −1 keeps all.
	Keep int
	// Daily, Weekly, Monthly, Yearly keep the newest of each of the last so many
	// days, weeks, months and years that have one (grandfather, father, son).
	Daily, Weekly, Monthly, Yearly int
	// MaxBytes is the room that a destination's backups may take; 0 is no limit.
	MaxBytes int64
	// Disabled leaves everything: where the store itself expires or locks objects.
	Disabled bool
}

func (r Retention) withDefaults() Retention {
	if r.Keep == 0 && r.Daily+r.Weekly+r.Monthly+r.Yearly == 0 {
		r.Keep = 7
	}
	return r
}

// choose splits backups of one destination, newest first, into those that
// stay and those that go.
func (r Retention) choose(all []Stored) (stay, leave []Stored) {
	keep := make([]bool, len(all))
	var good []int
	safety := false
	for i, b := range all {
		switch {
		case b.Safety:
			keep[i], safety = !safety || len(good) == 0, true // the newest, and those since the newest good one
		case b.good():
			good = append(good, i)
		case len(good) == 0:
			keep[i] = true // partial ones stay until a good one follows them
		case b.Status == Good:
			keep[i] = true // only some tables: made on purpose, removed by hand
		}
	}
	for n, i := range good {
		if r.Keep < 0 || n < r.Keep || n == 0 {
			keep[i] = true
		}
	}
	for _, rule := range []struct {
		n      int
		period func(time.Time) string
	}{
		{r.Daily, func(t time.Time) string { return t.Format(time.DateOnly) }},
		{r.Weekly, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
		{r.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
		{r.Yearly, func(t time.Time) string { return t.Format("2006") }},
	} {
		seen := map[string]bool{}
		for _, i := range good {
			if p := rule.period(all[i].Started); !seen[p] && len(seen) < rule.n {
				seen[p], keep[i] = true, true
			}
		}
	}
	r.cap(all, good, keep)
	for i, b := range all {
		if keep[i] {
			stay = append(stay, b)
		} else {
			leave = append(leave, b)
		}
	}
	return stay, leave
}

// cap drops the oldest good ones until the rest fits, but never the newest.
func (r Retention) cap(all []Stored, good []int, keep []bool) {
	var size int64
	for i := range all {
		if keep[i] {
			size += all[i].Size
		}
	}
	for n := len(good) - 1; n > 0 && r.MaxBytes > 0 && size > r.MaxBytes; n-- {
		if i := good[n]; keep[i] {
			keep[i] = false
			size -= all[i].Size
		}
	}
}

// Prune removes what retention does not keep and returns it, newest first. A
// dry run only returns it.
func (h *Handler) Prune(ctx context.Context, dryRun bool) ([]Stored, error) {
	var gone []Stored
	var failed []error
	for _, name := range h.Destinations() {
		found, err := h.prune(ctx, name, dryRun)
		gone = append(gone, found...)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
	}
	return gone, errors.Join(failed...)
}

func (h *Handler) prune(ctx context.Context, destination string, dryRun bool) (gone []Stored, err error) {
	if h.c.Options.Retention.Disabled {
		return nil, nil
	}
	all, err := h.List(ctx, destination)
	if err != nil {
		return nil, err // what is not fully known is not thinned out
	}
	_, leave := h.c.Options.Retention.choose(all)
	for _, b := range leave {
		if !dryRun {
			if err := h.Delete(ctx, b); err != nil {
				return gone, err
			}
		}
		gone = append(gone, b)
	}
	return gone, nil
}

// Delete removes a backup: its sidecar first, so that it never counts without
// its archive.
func (h *Handler) Delete(ctx context.Context, b Stored) error {
	store, err := h.destination(b.Destination)
	if err != nil {
		return err
	}
	return deleteBackup(ctx, store, b)
}

func deleteBackup(ctx context.Context, store storage.Store, b Stored) error {
	if err := store.Delete(ctx, b.Key+sidecarEnding); err != nil {
		return err
	}
	return store.Delete(ctx, b.Archive)
}

// thinOut prunes the destinations that took the new backup, which by now is
// proven.
func (r *run) thinOut(ctx context.Context) error {
	var failed []error
	for _, o := range r.report.Outcomes {
		gone, err := r.prune(ctx, o.Destination, false)
		for _, b := range gone {
			r.report.Pruned = append(r.report.Pruned, b.Destination+"/"+b.ID)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("thinning out at %s: %w", o.Destination, err))
		}
	}
	return errors.Join(failed...)
}
