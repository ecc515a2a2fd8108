package restore

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// stage copies the archive into a private file and checks its hash while it is
// copied. What follows reads that copy only: a store that serves another
// archive the second time has no second time. remove deletes the copy.
func (r *Restorer) stage(ctx context.Context, b catalog.Stored, progress func(catalog.Step)) (staged catalog.Stored,
	remove func(), err error) {
	if progress == nil {
		progress = func(catalog.Step) {}
	}
	if err := r.spaceToStage(b.Size); err != nil {
		return b, nil, err
	}
	temp, dir := r.config.Temporary.NewFolder()
	_, claim, err := r.config.Temporary.Claim(ctx, temp, "the restore of "+b.ID)
	if err != nil {
		return b, nil, err
	}
	remove = func() {
		if err := os.RemoveAll(dir); err != nil {
			r.config.Logger.WarnContext(ctx, "local copy of a restored backup not removed",
				"event", "backup.cleanup_failed", "folder", dir, "error", err)
			claim.Release(ctx) // a sweep finds it
			return
		}
		claim.Remove(ctx)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		remove()
		return b, nil, fmt.Errorf("making a folder for the archive: %w", err)
	}
	name := filepath.Join(dir, "archive")
	if err := r.copyTo(ctx, name, b, progress); err != nil {
		remove()
		return b, nil, err
	}
	b.Local = name
	return b, remove, nil
}

func (r *Restorer) copyTo(ctx context.Context, name string, b catalog.Stored, progress func(catalog.Step)) (err error) {
	body, _, err := r.config.Catalog.Download(ctx, b)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	m := archive.NewMeter(ctx, body, func(n int64) {
		progress(catalog.Step{Done: n, Total: b.Size, Note: "fetching " + b.ID})
	})
	// One byte more than it should have shows that it has more.
	if _, err := io.Copy(f, io.LimitReader(m, b.Size+1)); err != nil {
		return fmt.Errorf("copying the archive from %s: %w", b.Destination, err)
	}
	if sum := m.SHA256(); m.Size() != b.Size || sum != b.SHA256 {
		return fmt.Errorf("%w: what %s serves is not the archive %s: SHA-256 %s, it was made with %s",
			manifest.ErrUnverified, b.Destination, b.ID, sum, b.SHA256)
	}
	return nil
}

// spaceToStage says whether the copy fits.
func (r *Restorer) spaceToStage(size int64) error {
	dir := r.config.Temporary.CopyParent()
	folder, err := storage.NewLocal(dir, storage.LocalOptions{})
	if err != nil {
		return fmt.Errorf("the folder for the copy of the archive: %w", err)
	}
	defer folder.Close()
	free, err := folder.Free()
	if err == nil && free < size {
		return fmt.Errorf("a restore copies the archive first, and %s has %d MiB free of the %d MiB that it needs: "+
			"free some, or name another folder (TMPDIR)", dir, free>>20, size>>20)
	}
	return nil
}
