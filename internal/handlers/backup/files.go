package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

const (
	// smallFile is read whole before it is packed, so that one that changes
	// meanwhile is read again instead of torn.
	smallFile = 4 << 20
	// fileTries is how often a file that changes is read.
	fileTries = 3
	// listSize is about how long one list of files becomes.
	listSize = 1 << 20
)

// addFiles packs every file of every set, and after some of them their list.
func (r *run) addFiles(ctx context.Context) error {
	list := &fileList{run: r}
	for _, set := range r.c.Files {
		for info, err := range set.Store.List(ctx, "") {
			if err != nil {
				return r.filesFailed(ctx, list, fmt.Errorf("listing the files of %s: %w", set.Label, err))
			}
			name := set.Label + "/" + info.Key
			if !r.wanted(name) {
				continue
			}
			if err := r.addFile(ctx, set.Store, info.Key, name, list); err != nil {
				return err
			}
			r.progress(catalog.Step{Done: r.dumped() + r.manifest.FileBytes, Total: r.total,
				Note: fmt.Sprintf("files: %d so far, %s", r.manifest.FileCount, name)})
		}
		if err := r.nameOthers(ctx, set); err != nil {
			return r.filesFailed(ctx, list, err)
		}
	}
	return list.flush()
}

// others is implemented by stores that hold what is no object: symlinks,
// devices, sockets.
type others interface {
	Others(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// nameOthers warns of what a backup does not hold: symlinks are never
// followed, as they may lead out of the folder or in a circle.
func (r *run) nameOthers(ctx context.Context, set fileset.Set) error {
	store, knows := set.Store.(others)
	if !knows {
		return nil
	}
	for name, err := range store.Others(ctx, "") {
		if err != nil {
			return fmt.Errorf("listing the links of %s: %w", set.Label, err)
		}
		if r.wanted(set.Label + "/" + name) {
			r.warn("%s is a link or a device and is left out", set.Label+"/"+name)
		}
	}
	return nil
}

func (r *run) dumped() int64 {
	if r.manifest.Dump == nil {
		return 0
	}
	return r.manifest.Dump.Bytes
}

// filesFailed makes the backup partial, unless it is over anyway.
func (r *run) filesFailed(ctx context.Context, list *fileList, err error) error {
	if ctx.Err() != nil {
		return err
	}
	r.manifest.Status, r.report.FilesError = manifest.Partial, err.Error()
	r.warn("not all files are in this backup: %v", err)
	return list.flush()
}

func (h *Handler) wanted(name string) bool {
	o := h.c.Options
	return (len(o.Include) == 0 || fileset.MatchesAny(o.Include, name)) && !fileset.MatchesAny(o.Exclude, name)
}

// addFile packs one file. One that vanishes, or cannot be read or held still,
// is named; only a fault of the archive itself is an error.
func (r *run) addFile(ctx context.Context, store storage.Store, key, name string, list *fileList) error {
	var file manifest.PackedFile
	var fault error
	for try := range fileTries {
		file, fault = r.tryFile(ctx, store, key, name, try == fileTries-1)
		var lost archiveError
		switch {
		case fault == nil:
			return list.add(file)
		case errors.As(fault, &lost):
			return lost.error
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(fault, storage.ErrNotFound):
			r.warn("%s vanished while the backup was made", name)
			return nil
		}
	}
	if !errors.Is(fault, errChanged) {
		return r.unreadable(name, fault)
	}
	r.warn("%s kept changing while it was read: the copy may be torn", name)
	return list.add(file)
}

// unreadable makes the backup partial: a file that cannot be read is missing.
func (r *run) unreadable(name string, err error) error {
	r.warn("%s cannot be read and is missing: %v", name, err)
	if r.report.FilesError == "" {
		r.report.FilesError = fmt.Sprintf("some files cannot be read, %s first: %v", name, err)
	}
	r.manifest.Status = manifest.Partial
	return nil
}

// archiveError is a fault of the archive, not of the file being packed.
type archiveError struct{ error }

var errChanged = errors.New("the file changed while it was read")

// tryFile packs a file as it is now. The last try keeps one that changes too.
func (r *run) tryFile(ctx context.Context, store storage.Store, key, name string, last bool) (manifest.PackedFile,
	error) {
	body, info, err := store.Open(ctx, key)
	if err != nil {
		return manifest.PackedFile{}, err
	}
	defer body.Close()
	file := manifest.PackedFile{Name: name, Size: info.Size, Modified: info.Modified.UTC().Truncate(time.Second)}
	var content io.Reader = watched{r.throttled(ctx, body), r.moved}
	var fault error
	if info.Size <= smallFile {
		data, err := io.ReadAll(io.LimitReader(content, smallFile+1))
		if err != nil {
			return file, err
		}
		if int64(len(data)) != info.Size || changed(ctx, store, key, info) {
			fault = errChanged
			if !last {
				return file, fault
			}
		}
		content, file.Size = bytes.NewReader(data), int64(len(data))
	}
	private, err := isPrivate(ctx, store, key)
	if err != nil {
		return file, err
	}
	file.SHA256, err = r.archive.AddEntry(archive.Entry{Name: manifest.FilesFolder + name, Modified: info.Modified,
		Size: file.Size, Private: private}, content)
	switch {
	case err != nil && file.SHA256 == "":
		return file, archiveError{err}
	case errors.Is(err, archive.ErrShort), err == nil && info.Size > smallFile && changed(ctx, store, key, info):
		return file, errChanged
	case err != nil:
		return file, err
	}
	return file, fault
}

// isPrivate says that visitors may not read an object, where its store knows that.
func isPrivate(ctx context.Context, store storage.Store, key string) (bool, error) {
	if s, knows := store.(interface {
		Private(ctx context.Context, key string) (bool, error)
	}); knows {
		return s.Private(ctx, key)
	}
	return false, nil
}

func changed(ctx context.Context, store storage.Store, key string, was storage.Info) bool {
	is, err := store.Stat(ctx, key)
	return err == nil && (is.Size != was.Size || !is.Modified.Equal(was.Modified))
}

// fileList gathers the lines of a list of files and packs it when it is long.
type fileList struct {
	*run
	lines []byte
	lists int
}

func (l *fileList) add(f manifest.PackedFile) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	l.lines = append(append(l.lines, line...), '\n')
	l.manifest.FileCount++
	l.manifest.FileBytes += f.Size
	if len(l.lines) < listSize {
		return nil
	}
	return l.flush()
}

func (l *fileList) flush() error {
	if len(l.lines) == 0 {
		return nil
	}
	l.lists++
	name := fmt.Sprintf("%sfiles-%06d.jsonl", manifest.ListFolder, l.lists)
	_, err := l.archive.Add(name, l.c.Now(), int64(len(l.lines)), bytes.NewReader(l.lines))
	l.lines = l.lines[:0]
	return err
}
