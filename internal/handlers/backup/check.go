package backup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// leavesBehind is implemented by stores in which killed writers leave something.
type leavesBehind interface {
	Sweep(ctx context.Context, prefix string, before time.Time) (int, error)
}

// sweepAge is how old a leftover must be: no backup runs longer.
const sweepAge = 24 * time.Hour

// check refuses what cannot work before anything is written: unknown
// destinations, and those without space or the right to write, which drop out.
// What the database's account may not see is named.
func (h *Handler) check(ctx context.Context, r *run) error {
	if err := checkTool(cmp.Or(r.request.Tool, h.c.Options.Tool)); err != nil {
		return jobs.Permanent(err)
	}
	e, err := h.Estimate(ctx, r.request)
	if err != nil {
		return err
	}
	r.estimate, r.total = e.Archive, e.DatabaseBytes+e.FileBytes
	r.progress(catalog.Step{Done: 0, Total: r.total, Note: e.String()})
	for _, w := range e.Warnings {
		r.warn("%s", w)
	}
	r.partsInRepository = h.storesParts(r, e)
	r.refused = map[string]error{}
	for _, name := range h.chosen(r.request) {
		here, err := e, error(nil)
		if r.inRepository {
			here, err = h.need(ctx, name, e)
		}
		if err == nil {
			err = h.takes(ctx, name, here)
		}
		if err != nil {
			r.refused[name] = err
			r.warn("destination %s is left out: %v", name, err)
		}
	}
	if len(r.refused) == len(h.chosen(r.request)) {
		err := errNoDestination
		for i, name := range slices.Sorted(maps.Keys(r.refused)) {
			err = fmt.Errorf("%w%c %s: %w", err, ":;"[min(i, 1)], name, r.refused[name])
		}
		return err
	}
	return nil
}

// taking are the destinations that the archive is sent to.
func (r *run) taking() []string {
	return slices.DeleteFunc(slices.Clone(r.chosen(r.request)), func(name string) bool {
		return r.refused[name] != nil
	})
}

// takes says why a destination cannot take a backup of this size: it has no
// space, or nothing can be written there.
func (h *Handler) takes(ctx context.Context, name string, e Estimate) error {
	if err := h.fits(name, e); err != nil {
		return err
	}
	if err := h.checkQuota(ctx, name, e); err != nil {
		return err
	}
	store := h.c.Destinations[name]
	if _, own := store.(*botble.Store); own {
		return nil // its own first step is to write a mark
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Options.StallTimeout, ErrStalled)
	defer cancel()
	probe := h.c.Options.Prefix + probeName
	if err := store.Put(ctx, probe, strings.NewReader("may be deleted\n"), storage.PutOptions{
		ExpectedSize: 15}); err != nil {
		return fmt.Errorf("nothing can be written there: %w", err)
	}
	if err := store.Delete(ctx, probe); err != nil {
		h.c.Logger.WarnContext(ctx, "backups cannot be deleted at a destination, so older ones stay",
			"event", "backup.delete_refused", "destination", name, "error", err)
	}
	return nil
}

// fits says why there is no space for a backup of this size.
func (h *Handler) fits(name string, e Estimate) error {
	if free, known := e.Free[name]; known && free-e.Archive < h.c.Options.MinFree {
		return fmt.Errorf("%s has %d MiB of free space, and the backup may need %d MiB and must leave %d MiB: free "+
			"some, or lower the retention",
			name, free>>20, e.Archive>>20, h.c.Options.MinFree>>20)
	}
	return nil
}

// probeName is what shows that a destination can be written to; it is neither
// an archive nor a manifest file.
const probeName = "backup-rights.probe"

// sweep removes what killed backups left. That it fails is no reason not to
// make a backup.
func (h *Handler) sweep(ctx context.Context, r *run) {
	h.SweepQuietly(ctx)
	before := h.c.Now().Add(-sweepAge)
	for _, name := range h.chosen(r.request) {
		store := h.c.Destinations[name]
		if s, ok := store.(leavesBehind); ok {
			if n, err := s.Sweep(ctx, h.c.Options.Prefix, before); err != nil {
				r.warn("leftovers at %s could not be removed: %v", name, err)
			} else if n > 0 {
				jobs.Logf(ctx, "removed %d leftovers of killed backups at %s", n, name)
			}
		}
		if err := h.removeOrphans(ctx, store, before); err != nil {
			r.warn("archives without manifest files at %s could not be removed: %v", name, err)
		}
	}
}

// removeOrphans deletes old archives without a manifest file: their backup was
// killed before it could count.
func (h *Handler) removeOrphans(ctx context.Context, store storage.Store, before time.Time) error {
	archives, manifestFiles := map[string]string{}, map[string]bool{}
	for info, err := range store.List(ctx, h.c.Options.Prefix+"backup-") {
		if err != nil {
			return err
		}
		key, isArchive := ownArchive(h.c.Options.Prefix, info.Key)
		if isArchive && info.Modified.Before(before) {
			archives[key] = info.Key
		} else if !isArchive {
			manifestFiles[info.Key] = true
		}
	}
	for key, name := range archives {
		if !manifestFiles[key+manifest.Ending] {
			if err := store.Delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownArchive is the key of the backup whose archive has a name.
func ownArchive(prefix, name string) (key string, ok bool) {
	base, _, _, ok := archive.Detect(name)
	return base, ok && strings.HasPrefix(base, prefix+"backup-") && !strings.Contains(strings.TrimPrefix(base, prefix),
		"/")
}
