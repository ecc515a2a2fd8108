package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Request says what a backup is to hold and where it goes.
type Request struct {
	Name            string
	Database, Files bool
	// Destinations by name; empty means all.
	Destinations []string
	// Tables limits the database part; such a backup is good for what it holds,
	// and never counts as the newest good one of the site.
	Tables []string
	// By names the job or the person that asked.
	By string
}

// Report is what became of a backup.
type Report struct {
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	By       string    `json:"by,omitempty"`
	Status   Status    `json:"status"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Archive  string    `json:"archive,omitempty"` // key
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256,omitempty"`
	Tables   int       `json:"tables"`
	Rows     int64     `json:"rows"`
	Files    int64     `json:"files"`
	// FileBytes before compression.
	FileBytes     int64     `json:"file_bytes"`
	DatabaseError string    `json:"database_error,omitempty"`
	FilesError    string    `json:"files_error,omitempty"`
	Error         string    `json:"error,omitempty"`
	Outcomes      []Outcome `json:"destinations"`
	Warnings      []string  `json:"warnings,omitempty"`
	// Proof is what reading it back showed, where that was done.
	Proof *Proof `json:"proof,omitempty"`
	// Pruned are the older backups that retention removed.
	Pruned []string `json:"pruned,omitempty"`
}

// Outcome is what became of a backup at one destination.
type Outcome struct {
	Destination string `json:"destination"`
	Place       string `json:"place,omitempty"`
	Error       string `json:"error,omitempty"`
	// Copied is true when the first try failed and the archive was copied from
	// another destination afterwards.
	Copied bool `json:"copied,omitempty"`
}

// Step is how far a backup, a proof or a restore is.
type Step struct {
	Done, Total int64 // bytes; Total 0 when unknown, else an estimate
	Note        string
}

// ErrStalled is the cause of a backup's end when nothing moved for too long.
var ErrStalled = errors.New("nothing moved for longer than the stall timeout")

// ErrPartial says that a backup lacks its database or its files. It is kept,
// marked, and never counted as good.
var ErrPartial = errors.New("the backup is partial")

// maxWarnings bounds what a report keeps; the rest is counted.
const maxWarnings = 200

// run is one backup in the making.
type run struct {
	*Handler
	request  Request
	report   Report
	manifest Manifest
	archive  *archive.Writer
	fan      *fanout
	key      string
	sum      hash.Hash
	size     int64
	moved    func() // resets the stall timer
	estimate int64  // of the archive's size
	total    int64  // bytes to read, about
	progress func(Step)
	dropped  int
	limiter  *rate.Limiter
}

// Create makes a backup, stores it, proves it and thins out older ones. The
// error says why it is not a good one; the report is filled in either case.
func (h *Handler) Create(ctx context.Context, request Request, progress func(Step)) (Report, error) {
	r := h.newRun(request, progress)
	if err := h.check(ctx, r); err != nil {
		return r.report, err
	}
	unlock, err := h.lock(ctx, r.report.ID)
	if err != nil {
		return r.report, err
	}
	defer unlock()
	if err := h.remember(ctx, r.report); err != nil {
		return r.report, err
	}
	h.sweep(ctx, r)
	err = r.make(ctx)
	if err == nil {
		err = r.prove(ctx)
	}
	if err == nil {
		err = r.thinOut(ctx)
	}
	return r.end(ctx, err)
}

func (h *Handler) newRun(request Request, progress func(Step)) *run {
	now := h.c.Now().UTC()
	id := now.Format("20060102T150405Z") + "-" + strings.ToLower(rand.Text()[:6])
	if progress == nil {
		progress = func(Step) {}
	}
	r := &run{Handler: h, request: request, progress: progress, sum: sha256.New()}
	r.report = Report{ID: id, Name: request.Name, By: request.By, Status: Running, Started: now}
	r.key = h.c.Options.Prefix + "backup-" + id
	r.report.Archive = r.key + h.c.Options.Compression.Ending(len(h.c.Options.Recipients) > 0)
	r.manifest.Header = Header{
		Format: formatVersion, ID: id, Name: request.Name, Tool: "cmsjobs " + h.c.Version, Started: now,
		Site: h.c.Site.URL(), Engine: engine(h.c.Site.DB.DriverName()), Database: request.Database, Files: request.Files,
	}
	return r
}

func (h *Handler) chosen(r Request) []string {
	if len(r.Destinations) == 0 {
		return h.Destinations()
	}
	return r.Destinations
}

// make writes the archive to every destination and then its sidecar, which
// makes it count.
func (r *run) make(ctx context.Context) error {
	ctx, stop := r.watch(ctx)
	defer stop()
	options := storage.PutOptions{ContentType: "application/octet-stream", ExpectedSize: r.estimate}
	r.fan = newFanout(ctx, r.c.Destinations, r.chosen(r.request), r.report.Archive, options, r.c.Options.StallTimeout)
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
	return r.seal(ctx)
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
	if err := r.addJSON(headerName, r.manifest.Header); err != nil {
		return err
	}
	r.manifest.Status = Good
	if r.request.Database {
		// A dump that fails is no reason to leave the files out (S0.86).
		if err := r.addDatabase(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, errNoDestination) {
				return err
			}
			r.manifest.Status, r.manifest.DatabaseError = Partial, err.Error()
			r.warn("the database is not in this backup: %v", err)
		}
	}
	if r.request.Files {
		if err := r.addFiles(ctx); err != nil {
			return err
		}
	}
	r.manifest.Finished, r.manifest.Warnings = r.c.Now().UTC(), r.report.Warnings
	if err := r.addJSON(manifestName, r.manifest); err != nil {
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

func (r *run) outcomes(err error) {
	for _, l := range r.fan.legs {
		o := Outcome{Destination: l.name, Place: place(r.c.Destinations[l.name])}
		switch {
		case l.err != nil:
			o.Error = l.err.Error()
		case err != nil:
			o.Error = err.Error()
		}
		r.report.Outcomes = append(r.report.Outcomes, o)
	}
}

// place is a store's address for people.
func place(s storage.Store) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// seal copies the archive to destinations that failed (S0.87: one retry), and
// puts the sidecar beside each archive.
func (r *run) seal(ctx context.Context) error {
	from := -1
	for i, o := range r.report.Outcomes {
		if o.Error == "" {
			from = i
			break
		}
	}
	if from < 0 {
		errs := []error{errors.New("no destination took the backup")}
		for _, l := range r.fan.legs {
			errs = append(errs, l.err)
		}
		return errors.Join(errs...)
	}
	side := r.sidecar()
	var failed []error
	for i := range r.report.Outcomes {
		o := &r.report.Outcomes[i]
		if o.Error != "" {
			if err := r.copyArchive(ctx, r.report.Outcomes[from].Destination, o); err != nil {
				failed = append(failed, fmt.Errorf("destination %s: %w", o.Destination, err))
				continue
			}
		}
		if err := putSidecar(ctx, r.c.Destinations[o.Destination], r.key, side); err != nil {
			o.Error = err.Error()
			failed = append(failed, fmt.Errorf("destination %s: %w", o.Destination, err))
		}
	}
	r.report.Status = side.Status
	if side.Status != Good {
		failed = append(failed, fmt.Errorf("%w: %s", ErrPartial, side.Error))
	}
	return errors.Join(failed...)
}

func (r *run) copyArchive(ctx context.Context, from string, o *Outcome) error {
	source, to := r.c.Destinations[from], r.c.Destinations[o.Destination]
	if _, consumes := source.(*Botble); consumes {
		return errors.New(o.Error)
	}
	body, _, err := source.Open(ctx, r.report.Archive)
	if err != nil {
		return errors.Join(errors.New(o.Error), err)
	}
	defer body.Close()
	options := storage.PutOptions{ContentType: "application/octet-stream", ExpectedSize: r.size}
	if err := to.Put(ctx, r.report.Archive, watched{body, r.moved}, options); err != nil {
		o.Error = "twice: " + err.Error()
		return fmt.Errorf("it failed, and copying the archive there failed too: %w", err)
	}
	o.Error, o.Copied = "", true
	return nil
}

// watched tells that something moved.
type watched struct {
	io.Reader
	moved func()
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.moved()
	return n, err
}

func (r *run) sidecar() Sidecar {
	s := Sidecar{
		Header: r.manifest.Header, Status: r.manifest.Status, Finished: r.manifest.Finished,
		Archive: r.report.Archive, Size: r.size, SHA256: r.report.SHA256, Encrypted: len(r.c.Options.Recipients) > 0,
		FileCount: r.manifest.FileCount, FileBytes: r.manifest.FileBytes, Warnings: r.report.Warnings, Limited: len(r.request.Tables) > 0,
	}
	s.Error = strings.Trim(r.manifest.DatabaseError+"; "+r.report.FilesError, "; ")
	if d := r.manifest.Dump; d != nil {
		s.Rows, s.Schema = d.Rows, d.Schema
		for _, t := range d.Tables {
			s.Tables = append(s.Tables, TableFigure{t.Name, t.Rows})
		}
	}
	return s
}

// end writes down what became of the run and tells who wants to know.
func (r *run) end(ctx context.Context, err error) (Report, error) {
	ctx = context.WithoutCancel(ctx)
	p := &r.report
	p.Finished = r.c.Now().UTC()
	p.Files, p.FileBytes, p.DatabaseError = r.manifest.FileCount, r.manifest.FileBytes, r.manifest.DatabaseError
	if d := r.manifest.Dump; d != nil {
		p.Tables, p.Rows = len(d.Tables), d.Rows
	}
	if p.Status == Running {
		p.Status = Failed
	}
	if r.dropped > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("(%d more warnings were dropped)", r.dropped))
	}
	if err != nil {
		p.Error = err.Error()
		err = fmt.Errorf("backup %s: %w", p.ID, err)
	}
	err = errors.Join(err, r.remember(ctx, *p))
	if r.c.Finished != nil && (err != nil || r.c.Options.NotifySuccess) {
		r.c.Finished(ctx, *p)
	}
	return *p, err
}

func (r *run) warn(format string, args ...any) {
	if len(r.report.Warnings) >= maxWarnings {
		r.dropped++
		return
	}
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}
