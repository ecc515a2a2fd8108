package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// LazyLocal is a Local whose folder is made by the first file that is
// put into it: a command that only looks (perhaps as root) must not leave a
// folder in which the service then may not write. A missing folder is empty.
type LazyLocal struct {
	dir  string
	lock sync.Mutex
	open *Local // as long as the process lives
}

// NewLazyLocal returns a store in a folder that need not be there.
func NewLazyLocal(dir string) *LazyLocal { return &LazyLocal{dir: dir} }

// String is the store's place, for messages and pages.
func (f *LazyLocal) String() string { return f.dir }

func (f *LazyLocal) store(create bool) (*Local, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.open != nil {
		return f.open, nil
	}
	local, err := NewLocal(f.dir, LocalOptions{Create: create})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(ErrNotFound, err)
	}
	if err == nil {
		f.open = local
	}
	return local, err
}

// Put makes the folder where it is missing.
func (f *LazyLocal) Put(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	s, err := f.store(true)
	if err != nil {
		return err
	}
	return s.Put(ctx, key, r, o)
}

// Open opens a file.
func (f *LazyLocal) Open(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	s, err := f.store(false)
	if err != nil {
		return nil, Info{}, err
	}
	return s.Open(ctx, key)
}

// Stat describes a file.
func (f *LazyLocal) Stat(ctx context.Context, key string) (Info, error) {
	s, err := f.store(false)
	if err != nil {
		return Info{}, err
	}
	return s.Stat(ctx, key)
}

// List yields what is there.
func (f *LazyLocal) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	s, err := f.store(false)
	if err != nil {
		return func(yield func(Info, error) bool) {
			if !errors.Is(err, ErrNotFound) {
				yield(Info{}, err)
			}
		}
	}
	return s.List(ctx, prefix)
}

// Others yields what is no file.
func (f *LazyLocal) Others(ctx context.Context, prefix string) iter.Seq2[string, error] {
	s, err := f.store(false)
	if err != nil {
		return func(yield func(string, error) bool) {
			if !errors.Is(err, ErrNotFound) {
				yield("", err)
			}
		}
	}
	return s.Others(ctx, prefix)
}

// Delete removes a file.
func (f *LazyLocal) Delete(ctx context.Context, key string) error {
	s, err := f.store(false)
	if err != nil {
		return err
	}
	return s.Delete(ctx, key)
}

// DeleteAll removes files.
func (f *LazyLocal) DeleteAll(ctx context.Context, keys []string) error {
	s, err := f.store(false)
	if err != nil {
		return err
	}
	return s.DeleteAll(ctx, keys)
}

// Sweep removes what killed writers left.
func (f *LazyLocal) Sweep(ctx context.Context, prefix string, before time.Time) (int, error) {
	s, err := f.store(false)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return s.Sweep(ctx, prefix, before)
}

// Free is the space on the disk of the folder, or of what is there of its path.
func (f *LazyLocal) Free() (int64, error) {
	dir := f.dir
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return FreeSpace(dir)
}

// FreeSpace is the space left for this user on the disk of a folder, in bytes.
func FreeSpace(dir string) (int64, error) {
	local, err := NewLocal(dir, LocalOptions{})
	if err != nil {
		return 0, err
	}
	free, err := local.Free()
	return free, errors.Join(err, local.Close())
}
