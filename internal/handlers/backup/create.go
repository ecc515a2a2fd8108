package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Request says what a backup is to hold and where it goes.
type Request struct {
	Name            string
	Database, Files bool
	// Destinations by name; empty means all.
	Destinations []string
	// Tables limits the database part; such a backup is complete for what it
	// holds, and is never the latest one of the site.
	Tables []string
	// Source says who asked: SourceSchedule, SourceJob, SourceCommand or
	// SourceRestore.
	Source string
	// Tool that dumps MySQL instead of the configured one: "own" or "mysqldump".
	Tool string
	// By names the job or the person that asked.
	By string
	// safety marks what is made before a restore: it may be of a broken site,
	// and pushes no other backup out.
	safety bool
}

// Who asks for backups.
const (
	SourceSchedule = "schedule"
	SourceJob      = "job" // anyone who can enqueue: held to a minimum interval
	SourceCommand  = "command"
	SourceRestore  = "restore"
)

// ErrStalled is the cause of a backup's end when nothing moved for too long.
var ErrStalled = errors.New("nothing moved for longer than the stall timeout")

// ErrPartial says that a backup lacks its database or its files. It is kept,
// marked, and never counted as complete.
var ErrPartial = errors.New("the backup is partial")

// run is one backup in the making.
type run struct {
	*Handler
	request  Request
	report   catalog.Report
	manifest manifest.Manifest
	archive  *archive.Writer
	fan      *fanout
	side     manifest.File // once it is sealed
	key      string
	sum      hash.Hash
	size     int64
	moved    func()           // resets the stall timer
	refused  map[string]error // destinations that are not even tried
	estimate int64            // of the archive's size
	total    int64            // bytes to read, about
	progress func(catalog.Step)
	dropped  int
	limiter  *rate.Limiter
}

// Create makes a backup, stores it, verifies it and prunes older ones. The
// error says why it is not complete; the report is filled in either case.
func (h *Handler) Create(ctx context.Context, request Request, progress func(catalog.Step)) (catalog.Report, error) {
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
func (h *Handler) safety(ctx context.Context, name string, database, files bool, progress func(catalog.Step)) (catalog.Report, error) {
	return h.create(ctx, h.newRun(Request{Name: name, Database: database, Files: files, Source: SourceRestore, safety: true}, progress))
}

// create makes a backup while the lock is held.
func (h *Handler) create(ctx context.Context, r *run) (catalog.Report, error) {
	if err := h.check(ctx, r); err != nil {
		return r.end(ctx, err)
	}
	if err := h.Record(ctx, r.report); err != nil {
		return r.report, err
	}
	h.sweep(ctx, r)
	err := r.make(ctx)
	if err == nil {
		err = r.verify(ctx)
	}
	if err == nil && !r.request.safety {
		err = r.prunePlaces(ctx)
	}
	return r.end(ctx, err)
}

func (h *Handler) newRun(request Request, progress func(catalog.Step)) *run {
	now := h.c.Now().UTC()
	id := now.Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
	if progress == nil {
		progress = func(catalog.Step) {}
	}
	r := &run{Handler: h, request: request, progress: progress, sum: sha256.New()}
	r.report = catalog.Report{ID: id, Name: request.Name, By: request.By, Source: request.Source, Status: manifest.Running, Started: now}
	r.key = h.c.Options.Prefix + "backup-" + id
	r.report.Archive = r.key + h.c.Options.Compression.Ending(len(h.c.Options.Recipients) > 0)
	r.manifest.Header = manifest.Header{
		Format: manifest.Version, ID: id, Name: request.Name, Tool: "cmsjobs " + h.c.Version, Started: now,
		Site: h.c.Site.URL(), Engine: database.Of(h.c.Site.DB).Name, Database: request.Database, Files: request.Files,
	}
	return r
}

func (h *Handler) chosen(r Request) []string {
	if len(r.Destinations) == 0 {
		return h.Destinations()
	}
	return r.Destinations
}

// make writes the archive to every destination and then its manifest file, which
// makes it count.
func (r *run) make(ctx context.Context) error {
	ctx, stop := r.watch(ctx)
	defer stop()
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
	r.manifest.Status = manifest.Complete
	if r.request.Database {
		// A dump that fails is no reason to leave the files out.
		if err := r.addDatabase(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, errNoDestination) {
				return err
			}
			r.manifest.Status, r.manifest.DatabaseError = manifest.Partial, err.Error()
			r.warn("the database is not in this backup: %v", err)
		}
	}
	if r.request.Files {
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

// watch ends a run in which nothing moves: backups may take hours, but not
// stand still.
func (r *run) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Twice the time that one hanging destination gets, so that the others go on.
	patience := 2 * r.c.Options.StallTimeout
	timer := time.AfterFunc(patience, func() { cancel(ErrStalled) })
	r.moved = func() { timer.Reset(patience) }
	return ctx, func() { timer.Stop(); cancel(nil) }
}
