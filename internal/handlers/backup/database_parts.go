package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/spool"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// partFolders are those of the database's parts in a repository.
var partFolders = []string{manifest.DatabaseFolder, manifest.RoutinesFolder}

// storesParts says whether the database's parts go into the repositories, too: files that
// have their names keep them out, and so does a disk that cannot take them before.
func (h *Handler) storesParts(r *run, e Estimate) bool {
	if !r.inRepository || !r.request.Database {
		return false
	}
	if slices.ContainsFunc(h.c.Files, func(s fileset.Set) bool {
		return slices.Contains(partFolders, s.Label+"/")
	}) {
		r.warn("the database is in the archive: files that are labelled database or routines have its names")
		return false
	}
	if err := h.spaceToSpool(e); err != nil {
		r.warn("the database is in the archive, whole: %v", err)
		return false
	}
	return true
}

// spaceToSpool says why the dump does not fit into the folder for temporary files.
func (h *Handler) spaceToSpool(e Estimate) error {
	folder, err := storage.NewLocal(h.CopyParent(), storage.LocalOptions{})
	if err != nil {
		return fmt.Errorf("the folder for the dump: %w", err)
	}
	defer folder.Close()
	need := e.DatabaseBytes / 3
	if free, err := folder.Free(); err == nil && free < need {
		return fmt.Errorf("%s has %d MiB free of the %d MiB that the dump may need before it is stored: free some, or "+
			"name another folder (TMPDIR)", h.CopyParent(), free>>20, need>>20)
	}
	return nil
}

// spoolDatabase dumps the database into a private file. remove deletes it. A dump that
// fails makes the backup partial, which is no error.
func (r *run) spoolDatabase(ctx context.Context) (remove func(), err error) {
	temp, dir := r.NewDumpFolder()
	_, claim, err := r.Claim(ctx, temp, "the dump of "+r.report.ID)
	if err != nil {
		return nil, err
	}
	remove = func() {
		if r.spool != nil {
			_ = r.spool.Close() // it was only read
		}
		if err := os.RemoveAll(dir); err != nil {
			r.c.Logger.WarnContext(ctx, "dump of a backup not removed from the folder for temporary files",
				"event", "backup.cleanup_failed", "folder", dir, "error", err)
			claim.Release(ctx) // a sweep finds it
			return
		}
		claim.Remove(ctx)
	}
	if err = os.Mkdir(dir, 0o700); err == nil {
		r.spool, err = spool.Create(filepath.Join(dir, "parts"))
	}
	if err == nil {
		err = r.tryDatabase(ctx)
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("dumping the database into the folder for temporary files: %w", err)
	}
	return remove, nil
}

// partSources are the parts of the database as files of a repository.
func (r *run) partSources() (sources []repository.Labelled) {
	if !r.hasParts() {
		return nil
	}
	for _, folder := range partFolders {
		sources = append(sources, repository.Labelled{Label: strings.TrimSuffix(folder, "/"),
			Source: r.spool.Source(folder)})
	}
	return sources
}

// hasParts says whether a whole dump waits to be stored in repositories.
func (r *run) hasParts() bool {
	return r.spool != nil && r.manifest.DatabaseError == "" && r.spool.Parts() > 0
}

// isPart knows the database's parts among the files of a repository.
func (r *run) isPart(name string) bool {
	return r.hasParts() && manifest.IsPart(name)
}
