package botble

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Put takes an archive apart into the CMS's files, or a manifest file as the mark
// that makes them count.
func (b *Store) Put(ctx context.Context, key string, r io.Reader, _ storage.PutOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasSuffix(key, manifest.Ending) {
		return b.complete(ctx, key, r)
	}
	_, format, encrypted, ok := archive.Detect(key)
	if !ok || encrypted {
		return fmt.Errorf("%s cannot be kept in the CMS's layout", key)
	}
	w := &writer{Store: b, ctx: ctx}
	err := archive.Read(ctx, r, format, false, nil, w.visit)
	if err = errors.Join(err, w.finish(err)); err != nil {
		if w.folder != "" {
			err = errors.Join(err, b.removeFolder(context.WithoutCancel(ctx), w.folder))
		}
		return fmt.Errorf("writing the CMS's own layout: %w", err)
	}
	return nil
}

// writer takes one archive apart.
type writer struct {
	*Store
	ctx    context.Context
	folder string
	zip    *zip.Writer
	pipe   *io.PipeWriter
	name   string // of the open zip file: database, routines or storage
	entry  io.Writer
	done   chan error
}

func (w *writer) visit(e archive.Entry, content io.Reader) error {
	switch {
	case e.Name == manifest.HeaderEntry:
		return w.begin(content)
	case strings.HasPrefix(e.Name, manifest.DatabaseFolder):
		return w.sql("database", content)
	case strings.HasPrefix(e.Name, manifest.RoutinesFolder):
		return w.sql("routines", content)
	case strings.HasPrefix(e.Name, manifest.FilesFolder+w.uploads+"/"):
		if err := w.open("storage"); err != nil {
			return err
		}
		h := &zip.FileHeader{Name: strings.TrimPrefix(e.Name, manifest.FilesFolder+w.uploads+"/"), Method: zip.Deflate,
			Modified: e.Modified}
		entry, err := w.zip.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = io.Copy(entry, content)
		return err
	}
	return nil
}

func (w *writer) begin(content io.Reader) error {
	var header *manifest.Header
	if err := manifest.DecodeEntry(content, &header); err != nil {
		return err
	}
	if header.Engine != database.MySQL && header.Database {
		return fmt.Errorf("the CMS restores MySQL only, this is a backup of %s", header.Engine)
	}
	zone, err := w.zone(w.ctx)
	if err != nil {
		return err
	}
	folder := header.Started.In(zone).Format(keyLayout)
	mark := folder + "/" + markName
	if _, err := w.store.Stat(w.ctx, mark); err == nil {
		return fmt.Errorf("the backup %s is there already", folder)
	}
	w.folder = folder
	// The mark comes first: a sweep knows what a killed writer left.
	return w.store.Put(w.ctx, mark, strings.NewReader("{}\n"), storage.PutOptions{Public: w.public})
}

func (w *writer) sql(name string, content io.Reader) error {
	if err := w.open(name); err != nil {
		return err
	}
	if w.entry == nil {
		var err error
		if w.entry, err = w.zip.Create(name + "-" + w.folder + ".sql"); err != nil {
			return err
		}
	}
	_, err := io.Copy(w.entry, content)
	return err
}

// open makes name the zip file that is being written.
func (w *writer) open(name string) error {
	if w.name == name {
		return nil
	}
	if w.folder == "" {
		return errors.New("the archive has no header")
	}
	if err := w.close(nil); err != nil {
		return err
	}
	r, pipe := io.Pipe()
	w.name, w.pipe, w.zip, w.entry, w.done = name, pipe, zip.NewWriter(pipe), nil, make(chan error, 1)
	key := fmt.Sprintf("%s/%s-%s.zip", w.folder, name, w.folder)
	go func() {
		err := w.store.Put(w.ctx, key, r, storage.PutOptions{ContentType: "application/zip", Public: w.public})
		r.CloseWithError(cause(err))
		w.done <- err
	}()
	return nil
}

// cause keeps a writer from seeing a success of its reader as none.
func cause(err error) error {
	if err == nil {
		return io.ErrClosedPipe
	}
	return err
}

// close ends the open zip file; failed is why it is to be thrown away.
func (w *writer) close(failed error) error {
	if w.zip == nil {
		return nil
	}
	var err error
	if failed == nil {
		err = w.zip.Close()
	}
	w.pipe.CloseWithError(cmp.Or(failed, err))
	putErr := <-w.done
	w.zip, w.name = nil, ""
	if failed != nil {
		return nil // the caller has the reason already
	}
	return errors.Join(putErr, err)
}

func (w *writer) finish(failed error) error {
	err := w.close(failed)
	if failed == nil && w.folder == "" {
		return errors.New("the archive has no header")
	}
	return err
}
