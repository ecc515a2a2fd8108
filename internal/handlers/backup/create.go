package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// ErrPartial says that a backup lacks its database or its files. It is kept,
// marked, and never counted as complete.
var ErrPartial = errors.New("the backup is partial")

// Create makes a backup, stores it, verifies it and prunes older ones. The
// error says why it is not complete; the report is filled in either case.
func (h *Handler) Create(ctx context.Context, request Request, progress func(catalog.Step)) (catalog.Report, error) {
	h.SettleQuietly(ctx) // half a restore is no state to save
	r := h.newRun(request, progress)
	ctx, unlock, err := h.locks.Exclusive(ctx, "the backup "+r.report.ID)
	if err != nil {
		return r.report, err
	}
	defer unlock()
	defer h.c.Working()()
	return h.create(ctx, r)
}

// safety makes a backup before a restore, which holds the lock.
func (h *Handler) safety(ctx context.Context, name string, database, files bool, progress func(catalog.Step)) (
	catalog.Report, error) {
	return h.create(ctx, h.newRun(Request{Name: name, Database: database, Files: files, Source: SourceRestore,
		safety: true}, progress))
}

// create makes a backup while the lock is held.
func (h *Handler) create(ctx context.Context, r *run) (catalog.Report, error) {
	var err error
	if r.inRepository, err = h.storesFiles(ctx, r); err == nil {
		err = h.check(ctx, r)
	}
	if err != nil {
		return r.end(ctx, err)
	}
	if err := h.Record(ctx, r.report); err != nil {
		return r.report, err
	}
	h.sweep(ctx, r)
	err = r.make(ctx)
	if err == nil {
		err = r.verify(ctx)
	}
	if err == nil && !r.request.safety {
		err = r.prunePlaces(ctx)
	}
	return r.end(ctx, err)
}

// make writes the archive to every destination and then its manifest file, which
// makes it count.
func (r *run) make(ctx context.Context) error {
	ctx, stop := r.watch(ctx)
	defer stop()
	r.manifest.Status = manifest.Complete
	if r.partsInRepository {
		remove, err := r.spoolDatabase(ctx)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		defer remove()
	}
	options := storage.PutOptions{ContentType: "application/octet-stream", ExpectedSize: r.estimate}
	r.fan = newFanout(ctx, r.c.Destinations, r.taking(), r.report.Archive, options, r.c.Options.StallTimeout)
	err := r.write(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.fan.end(err)
	r.report.SHA256, r.report.Size = hex.EncodeToString(r.sum.Sum(nil)), r.size
	r.outcomes(err)
	if err != nil && !errors.Is(err, errNoDestination) {
		return err
	}
	return r.complete(ctx)
}

// write packs everything into the archive.
func (r *run) write(ctx context.Context) (err error) {
	r.archive, err = archive.NewWriter(r, r.c.Options.Compression, r.c.Options.Recipients)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.archive.Abandon()
		}
	}()
	if err := r.addJSON(manifest.HeaderEntry, r.manifest.Header); err != nil {
		return err
	}
	if r.request.Database && r.spool == nil {
		if err := r.tryDatabase(ctx); err != nil {
			return err
		}
	}
	if r.request.Files && !r.inRepository {
		if err := r.addFiles(ctx); err != nil {
			return err
		}
	}
	r.manifest.Finished, r.manifest.Warnings = r.c.Now().UTC(), r.report.Warnings
	if err := r.addJSON(manifest.LastEntry, r.manifest); err != nil {
		return err
	}
	return r.archive.Close()
}

// Write implements io.Writer for the finished bytes of the archive.
func (r *run) Write(p []byte) (int, error) {
	r.sum.Write(p)
	n, err := r.fan.Write(p)
	r.size += int64(n)
	r.moved()
	return n, err
}

// end writes down what became of the run and tells who wants to know. A cancelled
// run waits for no database that does not answer: it is found unfinished later.
func (r *run) end(ctx context.Context, err error) (catalog.Report, error) {
	ctx, cancel := jobs.Outlasting(ctx)
	defer cancel()
	p := &r.report
	p.Finished = r.c.Now().UTC()
	p.Files, p.FileBytes, p.DatabaseError = r.manifest.FileCount, r.manifest.FileBytes, r.manifest.DatabaseError
	if d := r.manifest.Dump; d != nil {
		p.Tables, p.Rows = len(d.Tables), d.Rows
	}
	if p.Status == manifest.Running {
		p.Status = manifest.Failed
	}
	if r.dropped > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("(%d more warnings were dropped)", r.dropped))
	}
	if err != nil {
		p.Error = err.Error()
		err = fmt.Errorf("backup %s: %w", p.ID, err)
	}
	err = errors.Join(err, r.Record(ctx, *p))
	if r.c.Finished != nil && (err != nil || r.c.Options.NotifySuccess) {
		r.c.Finished(ctx, *p)
	}
	return *p, err
}
