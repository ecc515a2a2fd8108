package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Kept is what retention says of one backup at one destination.
type Kept struct {
	Stored
	retention.Decision
}

// PrunePlan says of every backup whether it stays, why and until when. It
// changes nothing.
func (h *Handler) PrunePlan(ctx context.Context) ([]Kept, error) {
	all, err := h.List(ctx, "")
	plan := make([]Kept, len(all))
	for i, d := range h.Forecast(all) {
		plan[i] = Kept{all[i], d}
	}
	return plan, err
}

// Forecast says of each backup of a list whether it stays, why and until when.
func (h *Handler) Forecast(list []Stored) []retention.Decision {
	out := make([]retention.Decision, len(list))
	for _, name := range h.Destinations() {
		var at []int
		var here []Stored
		for i, b := range list {
			if b.Destination == name {
				at, here = append(at, i), append(here, b)
			}
		}
		for n, d := range h.c.Options.Retention.Forecast(h.rated(here), h.c.Now()) {
			out[at[n]] = d
		}
	}
	return out
}

// rated is what the rules look at.
func (h *Handler) rated(all []Stored) []retention.Backup {
	rated := make([]retention.Backup, len(all))
	for i, b := range all {
		rated[i] = retention.Backup{Started: b.Started, Database: b.Database, Files: b.Files, Complete: b.Made == Complete,
			Tables: b.Limited, Safety: b.Safety, Foreign: b.Origin.foreign(), State: h.state(b)}
	}
	return rated
}

// Prune removes what retention does not keep and returns it, newest first.
func (h *Handler) Prune(ctx context.Context) ([]Stored, error) {
	ctx, unlock, err := h.lock(ctx, "pruning the backups")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var gone []Stored
	var failed []error
	for _, name := range h.Destinations() {
		found, err := h.prune(ctx, name)
		gone = append(gone, found...)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
	}
	return gone, errors.Join(failed...)
}

// deleteBatch is how many backups are deleted with one call where the store
// can; S3 takes 1,000 objects.
const deleteBatch = 1000

// deletesAtOnce is how many such calls are made at the same time: a store may take
// seconds for each.
const deletesAtOnce = 4

// batchDeleter is implemented by stores that delete many objects with one call.
type batchDeleter interface {
	DeleteAll(ctx context.Context, keys []string) error
}

// prune removes what goes at one destination. What is not fully known is not
// pruned. The caller holds the lock.
func (h *Handler) prune(ctx context.Context, destination string) (gone []Stored, err error) {
	store, err := h.destination(destination)
	if err != nil {
		return nil, err
	}
	defer func() { h.keepCatalog(ctx, destination, store, gone) }()
	all, err := h.List(ctx, destination)
	if err != nil {
		return nil, err
	}
	var leave []Stored
	for i, d := range h.c.Options.Retention.Decide(h.rated(all), h.c.Now()) {
		if !d.Keep {
			leave = append(leave, all[i])
		}
	}
	batch, many := store.(batchDeleter)
	if !many {
		for _, b := range leave {
			if err := deleteBackup(ctx, store, b); err != nil {
				return gone, err
			}
			gone = append(gone, b)
		}
		return gone, nil
	}
	batches := slices.Collect(slices.Chunk(leave, deleteBatch))
	failed := make([]error, len(batches))
	var deleting errgroup.Group
	deleting.SetLimit(deletesAtOnce)
	for i, some := range batches {
		deleting.Go(func() error {
			failed[i] = deleteBackups(ctx, batch, some)
			return nil
		})
	}
	_ = deleting.Wait() // each error is in failed
	for i, some := range batches {
		if failed[i] == nil {
			gone = append(gone, some...)
		}
	}
	return gone, errors.Join(failed...)
}

// deleteBackups removes the manifest files first, as deleteBackup does.
func deleteBackups(ctx context.Context, store batchDeleter, list []Stored) error {
	var manifestFiles, archives []string
	for _, b := range list {
		manifestFiles, archives = append(manifestFiles, b.Key+manifestFileEnding), append(archives, b.Archive)
	}
	if err := store.DeleteAll(ctx, manifestFiles); err != nil {
		return err
	}
	return store.DeleteAll(ctx, archives)
}

// Delete removes a backup: its manifest file first, so that it never counts without
// its archive.
func (h *Handler) Delete(ctx context.Context, b Stored) error {
	store, err := h.destination(b.Destination)
	if err != nil {
		return err
	}
	return deleteBackup(ctx, store, b)
}

func deleteBackup(ctx context.Context, store storage.Store, b Stored) error {
	if err := store.Delete(ctx, b.Key+manifestFileEnding); err != nil {
		return err
	}
	return store.Delete(ctx, b.Archive)
}

// prunePlaces prunes the destinations that took the new backup, which by now
// is verified.
func (r *run) prunePlaces(ctx context.Context) error {
	var failed []error
	for _, o := range r.report.Outcomes {
		if o.Error != "" {
			continue // what is there may be needed more
		}
		gone, err := r.prune(ctx, o.Destination)
		for _, b := range gone {
			r.report.Pruned = append(r.report.Pruned, b.Destination+"/"+b.ID)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("pruning at %s: %w", o.Destination, err))
		}
	}
	return errors.Join(failed...)
}

// checkQuota says why a destination may not take another archive: the backups there
// would take more than MaxBytes. None goes to make space.
func (h *Handler) checkQuota(ctx context.Context, destination string, e Estimate) error {
	limit := h.c.Options.MaxBytes
	if limit <= 0 {
		return nil
	}
	all, err := h.List(ctx, destination)
	if err != nil {
		return err
	}
	size := likely(all, e)
	var used int64
	for i, d := range h.c.Options.Retention.Decide(h.rated(all), h.c.Now()) {
		if d.Keep {
			used += all[i].Size
		}
	}
	if used+size > limit {
		return fmt.Errorf("the backups there take %d MiB, a new one may need %d MiB, and all together may take %d MiB: "+
			"raise backup.max_total, lower what retention keeps, or delete some by hand",
			used>>20, size>>20, limit>>20)
	}
	return nil
}

// likely is a new archive's size, judged by the newest one with the same parts:
// the estimate is a cautious one.
func likely(all []Stored, e Estimate) int64 {
	for _, b := range all { // newest first
		if b.Made == Complete && !b.Limited && b.Database == (e.DatabaseBytes > 0) && b.Files == (e.Files > 0) {
			return min(e.Archive, b.Size+b.Size/2)
		}
	}
	return e.Archive
}
