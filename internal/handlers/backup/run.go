package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/spool"
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
	// Full puts database and files into the archive, whatever Options.Form is.
	Full bool
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

// run is one backup in the making.
type run struct {
	*Handler
	request  Request
	report   catalog.Report
	manifest manifest.Manifest
	archive  *archive.Writer
	fan      *fanout
	sides    map[string]manifest.File // by destination, once they are sealed
	// inRepository says that the files go into repositories, not into the archive.
	inRepository bool
	// partsInRepository says the same of the parts of the database. They wait in spool,
	// which is nil where they go into the archive.
	partsInRepository bool
	spool             *spool.Spool
	key               string
	sum               hash.Hash
	size              int64
	moved             func()           // resets the stall timer
	refused           map[string]error // destinations that are not even tried
	estimate          int64            // of the archive's size
	total             int64            // bytes to read, about
	progress          func(catalog.Step)
	dropped           int
	limiter           *rate.Limiter
}

func (h *Handler) newRun(request Request, progress func(catalog.Step)) *run {
	now := h.c.Now().UTC()
	id := now.Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
	if progress == nil {
		progress = func(catalog.Step) {}
	}
	r := &run{Handler: h, request: request, progress: progress, sum: sha256.New(),
		sides: map[string]manifest.File{}}
	r.report = catalog.Report{ID: id, Name: request.Name, By: request.By, Source: request.Source,
		Status: manifest.Running, Started: now}
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

func (r *run) warn(format string, args ...any) {
	if len(r.report.Warnings) >= maxWarnings {
		r.dropped++
		return
	}
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}

// maxWarnings bounds what a report keeps; the rest is counted.
const maxWarnings = 200

func (r *run) addJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = r.archive.Add(name, r.c.Now(), int64(len(data)), bytes.NewReader(data))
	return err
}
