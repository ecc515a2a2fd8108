package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// File is a file of a source.
type File struct {
	Name     string // slash-separated, relative to the source
	Size     int64
	Mode     fs.FileMode // other than regular: a link or a device, which is left out
	Modified time.Time
	// Changed is when content or attributes last changed, by the file system; zero
	// when it does not say so.
	Changed time.Time
	// Identity differs when the file became another, or its content changed, while
	// Size and Modified stayed. "" where the source cannot tell: then the file is
	// read by each backup.
	Identity string
}

// OpenFile is an open file of a source.
type OpenFile interface {
	io.ReadCloser
	// Stat describes what is read, as it is now.
	Stat() (File, error)
}

// Source is where files come from.
type Source interface {
	// Files yields what there is in the order of the names' bytes.
	Files(ctx context.Context) iter.Seq2[File, error]
	// Open opens a file. fs.ErrNotExist or storage.ErrNotFound when it vanished.
	Open(ctx context.Context, name string) (OpenFile, error)
}

// Folder is a local folder as a source. Links are not followed and nothing outside
// of the folder is read.
type Folder struct{ root *os.Root }

// NewFolder opens a folder; Close releases it.
func NewFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	}
	return &Folder{root}, nil
}

// Close releases the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Files implements Source. What vanishes meanwhile is left out.
func (f *Folder) Files(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) { f.walk(ctx, ".", yield) }
}

func (f *Folder) walk(ctx context.Context, folder string, yield func(File, error) bool) bool {
	entries, err := f.entries(folder)
	if err != nil {
		return yield(File{Name: folder}, fmt.Errorf("reading the folder %s: %w", path.Join(f.root.Name(), folder), err))
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return yield(File{}, context.Cause(ctx))
		}
		name := path.Join(folder, e.Name())
		if e.IsDir() {
			if !f.walk(ctx, name, yield) {
				return false
			}
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("looking at %s: %w", path.Join(f.root.Name(), name), err)
			info = noInfo{}
		}
		if !yield(describe(name, info), err) {
			return false
		}
	}
	return true
}

// noInfo stands for a file that cannot be looked at.
type noInfo struct{ fs.FileInfo }

func (noInfo) Size() int64        { return 0 }
func (noInfo) Mode() fs.FileMode  { return 0 }
func (noInfo) ModTime() time.Time { return time.Time{} }
func (noInfo) Sys() any           { return nil }

// entries are those of a folder in the order of the paths below it: "a-b" comes
// before "a/c".
func (f *Folder) entries(folder string) ([]fs.DirEntry, error) {
	d, err := f.root.Open(folder)
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return entries, errors.Join(err, d.Close())
}

// describe says what the file system knows of a file.
func describe(name string, info fs.FileInfo) File {
	f := File{Name: name, Size: info.Size(), Mode: info.Mode(), Modified: writable(info.ModTime())}
	f.Identity, f.Changed = identify(info)
	return f
}

// writable returns a time that RFC 3339 can write.
func writable(t time.Time) time.Time {
	if year := t.UTC().Year(); year < 1 || year > 9998 {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// Open implements Source.
func (f *Folder) Open(_ context.Context, name string) (OpenFile, error) {
	// What became a pipe meanwhile must not hold the backup up.
	file, err := f.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	opened := &folderFile{file, name}
	now, err := opened.Stat()
	if err == nil && !now.Mode.IsRegular() {
		err = fmt.Errorf("it became %s: %w", now.Mode.Type(), fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return opened, nil
}

type folderFile struct {
	*os.File
	name string
}

// Stat implements OpenFile.
func (f *folderFile) Stat() (File, error) {
	info, err := f.File.Stat()
	if err != nil {
		return File{}, err
	}
	return describe(f.name, info), nil
}

// Store makes a source of a store. Objects that visitors may not read have the mode
// 0600, where the store knows that. Only one that gives objects tags (a bucket)
// tells what is unchanged.
type Store struct{ Store storage.Store }

// Files implements Source.
func (s Store) Files(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for info, err := range s.Store.List(ctx, "") {
			if !yield(fromStore(info), err) {
				return
			}
		}
	}
}

func fromStore(info storage.Info) File {
	f := File{Name: info.Key, Size: info.Size, Mode: 0o644, Modified: writable(info.Modified), Changed: info.Modified}
	if info.Tag != "" {
		f.Identity = "tag:" + info.Tag
	}
	return f
}

// Open implements Source.
func (s Store) Open(ctx context.Context, name string) (OpenFile, error) {
	body, info, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	info.Key = name
	f := fromStore(info)
	if p, knows := s.Store.(interface {
		Private(ctx context.Context, key string) (bool, error)
	}); knows {
		private, err := p.Private(ctx, name)
		if err != nil {
			return nil, errors.Join(err, body.Close())
		}
		if private {
			f.Mode = 0o600
		}
	}
	return &storeFile{body, f}, nil
}

// storeFile is an object: a store reads one version of it.
type storeFile struct {
	io.ReadCloser
	file File
}

// Stat implements OpenFile.
func (f *storeFile) Stat() (File, error) { return f.file, nil }
