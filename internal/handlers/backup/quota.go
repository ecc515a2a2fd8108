package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
)

// checkQuota says why a destination may not take another archive: the backups there
// would take more than its MaxBytes. None goes to make space.
func (h *Handler) checkQuota(ctx context.Context, destination string, e Estimate) error {
	own := h.c.Options.limitsOf(destination)
	limit := own.MaxBytes
	if limit <= 0 {
		return nil
	}
	all, err := h.List(ctx, destination)
	if err != nil {
		return err
	}
	size := likely(all, e)
	var used int64
	for i, d := range own.Retention.Decide(h.rated(all), h.c.Now()) {
		if d.Keep {
			used += all[i].Size
		}
	}
	stored, err := h.inRepository(ctx, destination)
	if err != nil {
		return err
	}
	used += stored
	if used+size > limit {
		return fmt.Errorf(
			"the backups there take %d MiB, a new one may need %d MiB, and all together may take %d MiB: "+
				"raise backup.max_total, lower what retention keeps, or delete some by hand",
			used>>20, size>>20, limit>>20)
	}
	return nil
}

// inRepository is what the repository at a destination takes.
func (h *Handler) inRepository(ctx context.Context, destination string) (int64, error) {
	r, err := h.Repository(ctx, destination, false)
	if errors.Is(err, repository.ErrNoRepository) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return r.Size(ctx)
}

// likely is a new archive's size, judged by the newest one with the same parts:
// the estimate is a cautious one.
func likely(all []catalog.Stored, e Estimate) int64 {
	for _, b := range all { // newest first
		if b.Made == manifest.Complete && !b.Limited && b.Database == (e.DatabaseBytes > 0) &&
			b.Files == (e.Files > 0) && b.Repository == nil {
			return min(e.Archive, b.Size+b.Size/2)
		}
	}
	return e.Archive
}
