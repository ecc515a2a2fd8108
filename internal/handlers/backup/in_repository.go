package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Form says where the files of new backups, and the parts of their databases, are stored.
type Form string

// The forms of backups.
const (
	InArchive    Form = "archive"    // all of them in each archive
	InRepository Form = "repository" // each content once, in a repository at the destination
)

// storesFiles says whether the files of a backup go into repositories. They do not where
// the CMS's own profile wants an archive with everything, and in a scheduled backup that
// is due to be a full copy.
func (h *Handler) storesFiles(ctx context.Context, r *run) (bool, error) {
	q := r.request
	if h.c.Options.Form != InRepository || !q.Files || q.Full {
		return false, nil
	}
	for _, name := range h.chosen(q) {
		if _, own := h.c.Destinations[name].(*botble.Store); own {
			r.c.Logger.InfoContext(ctx, "the files are in the archive: a destination takes archives only",
				"event", "backup.whole_archive", "destination", name)
			return false, nil
		}
	}
	o := h.c.Options
	if len(o.Recipients) > 0 && len(o.Identities) == 0 && h.c.ManifestCache == "" {
		r.warn("the files are in the archive: without an age identity and without a folder for the last manifest, " +
			"nobody could tell which of them are unchanged")
		return false, nil
	}
	if q.Source != SourceSchedule || !q.Database || o.FullEvery <= 0 {
		return true, nil
	}
	return h.hasFullCopy(ctx, h.c.Now().Add(-o.FullEvery))
}

// hasFullCopy says whether a backup since a time has everything in its archive.
func (h *Handler) hasFullCopy(ctx context.Context, since time.Time) (bool, error) {
	all, err := h.List(ctx, "")
	full := slices.ContainsFunc(all, func(b catalog.Stored) bool {
		return b.Repository == nil && b.Database && b.Files && !b.Limited && !b.Safety && b.Made == manifest.Complete &&
			b.Status != manifest.Failed && b.Started.After(since)
	})
	if full {
		return true, nil // whatever another destination says
	}
	return false, err
}

// storeFiles makes a backup of the files in the repository at a destination.
func (r *run) storeFiles(ctx context.Context, destination string) (*manifest.InRepository, *repository.Report, error) {
	ctx, stop := r.watchOne(ctx)
	defer stop()
	repo, err := r.Repository(ctx, destination, true)
	if err != nil {
		return nil, nil, err
	}
	sources, closeAll, err := r.sources()
	if err != nil {
		return nil, nil, err
	}
	defer closeAll()
	report, err := repo.Backup(ctx, repository.Request{
		Sources: append(sources, r.partSources()...), Wanted: r.wantedInRepository, Note: r.report.ID,
		Progress: func(files, n int64) {
			r.moved()
			if !r.hasParts() {
				n += r.dumped()
			}
			r.progress(catalog.Step{Done: max(n, r.dumped()), Total: r.total,
				Note: fmt.Sprintf("files: %d so far, into the repository at %s", files, destination)})
		},
	})
	if err != nil {
		return nil, nil, err
	}
	for _, w := range report.Warnings {
		if !slices.Contains(r.report.Warnings, w) { // another destination said it
			r.warn("%s", w)
		}
	}
	return &manifest.InRepository{ID: repo.ID(), Backup: report.Record.ID, Run: report.Run,
		Added: report.Operations.Written}, report, nil
}

// watchOne ends the work at one destination when nothing moves there, before the whole
// run ends.
func (r *run) watchOne(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(r.c.Options.StallTimeout, func() { cancel(ErrStalled) })
	all := r.moved
	r.moved = func() {
		timer.Reset(r.c.Options.StallTimeout)
		all()
	}
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		r.moved = all
		all()
	}
}

// wantedInRepository leaves out what no archive has either: names that no store takes
// back make the backup partial.
func (r *run) wantedInRepository(name string) bool {
	if r.isPart(name) {
		return true
	}
	if !r.wanted(name) {
		return false
	}
	err := storage.CheckKey(name)
	if err == nil {
		return true
	}
	if !storage.Unfinished(name) {
		_ = r.unreadable(name, err) // it never fails
	}
	return false
}

// sources are the folders and buckets of the CMS. A folder that is missing is empty.
func (r *run) sources() (sources []repository.Labelled, closeAll func(), err error) {
	var folders []*repository.Folder
	closeAll = func() {
		for _, f := range folders {
			_ = f.Close() // it was only read
		}
	}
	if r.c.Options.Throttle > 0 && r.limiter == nil {
		r.limiter = rate.NewLimiter(rate.Limit(r.c.Options.Throttle), throttleBurst)
	}
	for _, set := range r.c.Files {
		var source repository.Source = repository.Store{Store: set.Store}
		switch s := set.Store.(type) {
		case *storage.Local, *storage.LazyLocal:
			folder, err := repository.NewFolder(place(s))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				closeAll()
				return nil, nil, err
			}
			folders = append(folders, folder)
			source = folder
		}
		sources = append(sources, repository.Labelled{Label: set.Label, Source: watchedSource{source, r}})
	}
	return sources, closeAll, nil
}

// watchedSource reads files as fast as they may be read, and tells that something moves.
type watchedSource struct {
	repository.Source
	run *run
}

// Open implements repository.Source.
func (s watchedSource) Open(ctx context.Context, name string) (repository.OpenFile, error) {
	f, err := s.Source.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, watched{s.run.throttled(ctx, f), s.run.moved}}, nil
}

type watchedFile struct {
	repository.OpenFile
	content watched
}

// Read implements io.Reader.
func (f watchedFile) Read(p []byte) (int, error) { return f.content.Read(p) }

// need is what a backup takes at a destination that has a repository, about: the files
// that are there already are not stored again.
func (h *Handler) need(ctx context.Context, destination string, e Estimate) (Estimate, error) {
	repo, err := h.Repository(ctx, destination, false)
	if errors.Is(err, repository.ErrNoRepository) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	last, err := repo.Find(ctx, "")
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, repository.ErrDamaged):
		return e, nil
	case err != nil:
		return e, err
	}
	const ofManifest = 200                      // bytes a file, at most
	files := max(last.Bytes-e.DatabaseBytes, 0) // the database may be among them
	all, _ := h.List(ctx, destination)          // without it the guess stands
	for _, b := range all {
		if b.Repository != nil && b.Repository.Backup == last.ID {
			files = b.FileBytes
		}
	}
	e.Archive = e.DatabaseBytes/3 + max(e.FileBytes-files, 0) + e.Files*ofManifest
	return e, nil
}

// forget deletes from the repository at a destination what no backup there names: those
// that were just deleted, and those a day old whose backup was killed. Contents that
// nothing needs any more go a day after they were stored.
func (h *Handler) forget(ctx context.Context, destination string, gone []catalog.Stored) error {
	repo, err := h.Repository(ctx, destination, false)
	if errors.Is(err, repository.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := h.List(ctx, destination)
	if err != nil {
		return err // one that cannot be read may name any
	}
	ids, err := repo.List(ctx)
	if err != nil {
		return err
	}
	needed, deleted := recordsOf(all), recordsOf(gone)
	var q repository.CollectRequest
	for _, id := range ids {
		started, ok := repository.Started(id)
		old := ok && h.c.Now().Sub(started) > sweepAge
		if !needed[id] && (deleted[id] || old) {
			q.Forget = append(q.Forget, id)
		}
	}
	_, err = repo.Collect(ctx, q)
	if repository.IsBusy(err) {
		h.c.Logger.InfoContext(ctx, "repository of backups is in use; its garbage stays until the next time",
			"event", "repository.busy", "destination", destination, "error", err)
		return nil
	}
	return err
}

// recordsOf are the records that backups name.
func recordsOf(list []catalog.Stored) map[string]bool {
	records := map[string]bool{}
	for _, b := range list {
		if b.Repository != nil {
			records[b.Repository.Backup] = true
		}
	}
	return records
}
