package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Kept is what retention says of one backup at one destination.
type Kept struct {
	catalog.Stored
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
func (h *Handler) Forecast(list []catalog.Stored) []retention.Decision {
	out := make([]retention.Decision, len(list))
	for _, name := range h.Destinations() {
		var at []int
		var here []catalog.Stored
		for i, b := range list {
			if b.Destination == name {
				at, here = append(at, i), append(here, b)
			}
		}
		for n, d := range h.c.Options.limitsOf(name).Retention.Forecast(h.rated(here), h.c.Now()) {
			out[at[n]] = d
		}
	}
	return out
}

// rated is what the rules look at.
func (h *Handler) rated(all []catalog.Stored) []retention.Backup {
	rated := make([]retention.Backup, len(all))
	for i, b := range all {
		rated[i] = retention.Backup{Started: b.Started, Database: b.Database, Files: b.Files,
			Complete: b.Made == manifest.Complete,
			Tables:   b.Limited, Safety: b.Safety, Foreign: b.Origin.Foreign(), State: h.State(b),
			Split: b.Repository != nil}
	}
	return rated
}

// Prune removes what retention does not keep and returns it, newest first. What a
// destination does not let be deleted stays, which is no error.
func (h *Handler) Prune(ctx context.Context) ([]catalog.Stored, error) {
	ctx, unlock, err := h.locks.Exclusive(ctx, "pruning the backups")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var gone []catalog.Stored
	var failed []error
	for _, name := range h.Destinations() {
		found, _, err := h.prune(ctx, name)
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

// prune removes what goes at one destination, and says what stays because the
// destination does not let it be deleted. What is not fully known is not pruned. The
// caller holds the lock.
func (h *Handler) prune(ctx context.Context, destination string) (gone, stays []catalog.Stored, err error) {
	store, err := h.Destination(destination)
	if err != nil {
		return nil, nil, err
	}
	defer func() { h.KeepCopy(ctx, destination, store, gone) }()
	all, err := h.List(ctx, destination)
	if err != nil {
		return nil, nil, err
	}
	var leave, kept []catalog.Stored
	for i, d := range h.c.Options.limitsOf(destination).Retention.Decide(h.rated(all), h.c.Now()) {
		if d.Keep {
			kept = append(kept, all[i])
		} else {
			leave = append(leave, all[i])
		}
	}
	gone, stays, err = deleteAll(ctx, store, leave)
	if len(stays) > 0 {
		h.c.Logger.WarnContext(ctx, "backups that the destination does not let be deleted", "event",
			"backup.delete_refused", "destination", destination, "backups", len(stays))
	}
	if err != nil {
		return gone, stays, err
	}
	kept = append(kept, stays...)
	return gone, stays, errors.Join(allowed(h.forget(ctx, destination, gone)),
		allowed(h.pruneLog(ctx, destination, kept)))
}

// allowed is an error, unless it says that the store does not let something be deleted.
func allowed(err error) error {
	if errors.Is(err, storage.ErrProtected) {
		return nil
	}
	return err
}

// deleteEach deletes backups one by one, past those that the store does not let be
// deleted.
func deleteEach(ctx context.Context, store storage.Store, leave []catalog.Stored) (gone, stays []catalog.Stored,
	err error) {
	for _, b := range leave {
		switch err := deleteBackup(ctx, store, b); {
		case errors.Is(err, storage.ErrProtected):
			stays = append(stays, b)
		case err != nil:
			return gone, stays, err
		default:
			gone = append(gone, b)
		}
	}
	return gone, stays, nil
}

// deleteAll deletes backups and returns those that are gone, and those that the store
// does not let be deleted.
func deleteAll(ctx context.Context, store storage.Store, leave []catalog.Stored) (gone, stays []catalog.Stored,
	err error) {
	batch, many := store.(batchDeleter)
	if !many {
		return deleteEach(ctx, store, leave)
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
		if !errors.Is(failed[i], storage.ErrProtected) {
			continue
		}
		var free, locked []catalog.Stored
		free, locked, failed[i] = deleteEach(ctx, store, some)
		gone, stays = append(gone, free...), append(stays, locked...)
	}
	return gone, stays, errors.Join(failed...)
}

// deleteBackups removes the manifest files first, as deleteBackup does.
func deleteBackups(ctx context.Context, store batchDeleter, list []catalog.Stored) error {
	var manifestFiles, archives []string
	for _, b := range list {
		manifestFiles, archives = append(manifestFiles, b.Key+manifest.Ending), append(archives, b.Archive)
	}
	if err := store.DeleteAll(ctx, manifestFiles); err != nil {
		return err
	}
	return store.DeleteAll(ctx, archives)
}

// Delete removes a backup: its manifest file first, so that it never counts without
// its archive.
func (h *Handler) Delete(ctx context.Context, b catalog.Stored) error {
	store, err := h.Destination(b.Destination)
	if err != nil {
		return err
	}
	return deleteBackup(ctx, store, b)
}

// DeleteFirst deletes a backup that is the only one, and the repository of its files if
// that holds nothing else; kept says that it holds more.
func (h *Handler) DeleteFirst(ctx context.Context, b catalog.Stored) (kept bool, err error) {
	if b.Repository != nil {
		r, err := h.Repository(ctx, b.Destination, false)
		if err == nil {
			var removed bool
			removed, err = r.Remove(ctx, b.Repository.Backup, b.Repository.Run)
			kept = !removed
		}
		if err != nil && !errors.Is(err, repository.ErrNoRepository) { // which an interrupted call removed
			return false, err
		}
	}
	return kept, h.Delete(ctx, b)
}

func deleteBackup(ctx context.Context, store storage.Store, b catalog.Stored) error {
	if err := store.Delete(ctx, b.Key+manifest.Ending); err != nil {
		return err
	}
	return store.Delete(ctx, b.Archive)
}

// protector is implemented by stores that know how they protect against deletion.
type protector interface {
	Protection(ctx context.Context) (storage.Protection, error)
}

// Protections says how the destinations that know it protect what is there against
// deletion. Where one cannot be asked, the error names it and the others are there.
func (h *Handler) Protections(ctx context.Context) (map[string]storage.Protection, error) {
	out := map[string]storage.Protection{}
	var failed []error
	for _, name := range h.Destinations() {
		store, knows := h.c.Destinations[name].(protector)
		if !knows {
			continue
		}
		p, err := store.Protection(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
			continue
		}
		out[name] = p
	}
	return out, errors.Join(failed...)
}

// prunePlaces prunes the destinations that took the new backup, which by now
// is verified.
func (r *run) prunePlaces(ctx context.Context) error {
	var failed []error
	for _, o := range r.report.Outcomes {
		if o.Error != "" {
			continue // what is there may be needed more
		}
		gone, stays, err := r.prune(ctx, o.Destination)
		if len(stays) > 0 {
			r.warn("%s does not let %d older backups be deleted, or not yet: they stay", o.Destination, len(stays))
		}
		for _, b := range gone {
			r.report.Pruned = append(r.report.Pruned, b.Destination+"/"+b.ID)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("pruning at %s: %w", o.Destination, err))
		}
	}
	return errors.Join(failed...)
}
