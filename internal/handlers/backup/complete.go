package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func (r *run) outcomes(err error) {
	for _, l := range r.fan.destinations {
		o := catalog.Outcome{Destination: l.name, Location: place(r.c.Destinations[l.name])}
		switch {
		case l.err != nil:
			o.Error = l.err.Error()
		case err != nil:
			o.Error = err.Error()
		}
		r.report.Outcomes = append(r.report.Outcomes, o)
	}
	for _, name := range r.chosen(r.request) {
		if refused := r.refused[name]; refused != nil {
			r.report.Outcomes = append(r.report.Outcomes, catalog.Outcome{
				Destination: name, Location: place(r.c.Destinations[name]), Error: refused.Error()})
		}
	}
}

// place is a store's address for people.
func place(s storage.Store) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return ""
}

// complete copies the archive to destinations that failed (one retry), and
// puts the manifest file beside each archive.
func (r *run) complete(ctx context.Context) error {
	from := -1
	for i, o := range r.report.Outcomes {
		if o.Error == "" {
			from = i
			break
		}
	}
	if from < 0 {
		errs := []error{errors.New("no destination took the backup")}
		for _, l := range r.fan.destinations {
			errs = append(errs, l.err)
		}
		return errors.Join(errs...)
	}
	key, err := r.Signer(ctx)
	if err != nil {
		return fmt.Errorf("signing the backup: %w", err)
	}
	var failed []error
	kept := 0
	for i := range r.report.Outcomes {
		o := &r.report.Outcomes[i]
		if r.refused[o.Destination] != nil {
			failed = append(failed, fmt.Errorf("destination %s: %s", o.Destination, o.Error))
			continue
		}
		if o.Error != "" {
			if err := r.copyArchive(ctx, r.report.Outcomes[from].Destination, o); err != nil {
				failed = append(failed, fmt.Errorf("destination %s: %w", o.Destination, err))
				continue
			}
		}
		if err := r.seal(ctx, key, o.Destination); err != nil {
			o.Error = err.Error()
			// Without its manifest file it counts nowhere; a sweep finds what cannot be removed now.
			failed = append(failed, fmt.Errorf("destination %s: %w", o.Destination, err),
				r.c.Destinations[o.Destination].Delete(context.WithoutCancel(ctx), r.report.Archive))
			continue
		}
		kept++
	}
	if kept == 0 {
		return errors.Join(failed...)
	}
	r.report.Status = manifest.Complete
	for _, side := range r.sides {
		if side.Status != manifest.Complete && r.report.Status == manifest.Complete {
			r.report.Status = side.Status
			failed = append(failed, fmt.Errorf("%w: %s", ErrPartial, side.Error))
		}
	}
	return errors.Join(failed...)
}

// seal stores the files at a destination, where they are not in the archive, and writes
// the signed manifest file beside the archive.
func (r *run) seal(ctx context.Context, key manifest.Signer, destination string) error {
	var in *manifest.InRepository
	if r.inRepository {
		var files *repository.Report
		var err error
		if in, files, err = r.storeFiles(ctx, destination); err != nil {
			return fmt.Errorf("storing the files: %w", err)
		}
		r.manifest.FileCount, r.manifest.FileBytes = files.Record.Files, files.Record.Bytes
		if r.hasParts() {
			in.DatabaseBytes = r.spool.Size()
			r.manifest.FileCount -= r.spool.Parts()
			r.manifest.FileBytes -= r.spool.Bytes()
		}
		if files.Record.Status != repository.Complete {
			r.manifest.Status = manifest.Partial
			if r.report.FilesError == "" {
				r.report.FilesError = "some files cannot be read: " + files.Missing
			}
		}
		r.report.Stored += in.Added
	}
	side := r.manifestFile()
	side.Repository = in
	if err := key.Sign(&side); err != nil {
		return fmt.Errorf("signing the backup: %w", err)
	}
	if err := manifest.WriteFile(ctx, r.c.Destinations[destination], r.key, side); err != nil {
		return err
	}
	r.sides[destination] = side
	return nil
}

func (r *run) copyArchive(ctx context.Context, from string, o *catalog.Outcome) error {
	source, to := r.c.Destinations[from], r.c.Destinations[o.Destination]
	if _, consumes := source.(*botble.Store); consumes {
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

func (r *run) manifestFile() manifest.File {
	s := manifest.File{
		Header: r.manifest.Header, Status: r.manifest.Status, Made: r.manifest.Status, Finished: r.manifest.Finished,
		Archive: r.report.Archive, Size: r.size, SHA256: r.report.SHA256, Encrypted: len(r.c.Options.Recipients) > 0,
		FileCount: r.manifest.FileCount, FileBytes: r.manifest.FileBytes, Warnings: r.report.Warnings,
		Limited: len(r.request.Tables) > 0, Safety: r.request.safety,
	}
	s.Error = strings.Trim(r.manifest.DatabaseError+"; "+r.report.FilesError, "; ")
	if d := r.manifest.Dump; d != nil {
		s.Rows, s.Schema, s.Needs = d.Rows, d.Schema, portable.Of(*d)
		if d.Log != nil && !s.Limited {
			s.Log = &manifest.LogStart{LogPosition: *d.Log, Snapshot: d.Snapshot}
		}
		for _, t := range d.Tables {
			s.Tables = append(s.Tables, manifest.TableFigure{Name: t.Name, Rows: t.Rows})
		}
	}
	return s
}
