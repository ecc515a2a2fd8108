package restore

import (
	"context"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// writer puts the entries of an archive where they belong.
type writer struct {
	request  Request
	load     dump.PieceLoader // nil where the database stays
	kept     bool             // another closes load
	files    fileTarget
	batch    string             // of files that are written beside the present ones; "" is in their places
	manifest *manifest.Manifest // once it was read
	done     *Result
}

func (w *writer) entry(ctx context.Context, e archive.Entry, content io.Reader) error {
	name, isFile := strings.CutPrefix(e.Name, manifest.FilesFolder)
	switch {
	case e.Name == manifest.LastEntry:
		return manifest.DecodeEntry(content, &w.manifest)
	case isFile && w.request.Files && w.request.wants(name):
		return w.file(ctx, name, e.Size, e.Private, content)
	case w.load != nil && manifest.IsPart(e.Name):
		data, err := manifest.ReadEntry(e, content)
		if err != nil {
			return err
		}
		part, table := manifest.PartOf(e.Name)
		return w.load.Load(part, table, data)
	}
	return nil
}

// file writes one file. One that a web server could execute is counted only, unless
// the request allows it. Visitors may read it afterwards if they could before.
func (w *writer) file(ctx context.Context, name string, size int64, private bool, content io.Reader) error {
	if !w.request.AllowExecutable && executable(name) {
		w.done.Executable++
		return nil
	}
	store, key, err := w.files.of(name)
	if err != nil {
		return err
	}
	w.done.Files++
	if w.batch != "" {
		return stagerOf(store).Stage(ctx, w.batch, key, content, !private)
	}
	return store.Put(ctx, key, content, storage.PutOptions{Public: !private, ExpectedSize: size})
}

// close ends what the writer opened. What was not all written is not kept, where that
// is possible.
func (w *writer) close(whole bool) (err error) {
	w.files.close()
	switch {
	case w.load == nil || w.kept:
	case whole:
		err = w.load.Close()
	default:
		err = w.load.Abort()
	}
	return err
}
