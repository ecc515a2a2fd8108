package app

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

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// lazyLocal is a local store whose folder is made by the first file that is
// put into it: a command that only looks (perhaps as root) must not leave a
// folder in which the service then may not write. A missing folder is empty.
type lazyLocal struct {
	dir  string
	lock sync.Mutex
	open *storage.Local // as long as the process lives
}

func (f *lazyLocal) String() string { return f.dir }

func (f *lazyLocal) store(create bool) (*storage.Local, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.open != nil {
		return f.open, nil
	}
	local, err := storage.NewLocal(f.dir, storage.LocalOptions{Create: create})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(storage.ErrNotFound, err)
	}
	if err == nil {
		f.open = local
	}
	return local, err
}

// Put makes the folder where it is missing.
func (f *lazyLocal) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	s, err := f.store(true)
	if err != nil {
		return err
	}
	return s.Put(ctx, key, r, o)
}

// Open opens a file.
func (f *lazyLocal) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	s, err := f.store(false)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return s.Open(ctx, key)
}

// Stat describes a file.
func (f *lazyLocal) Stat(ctx context.Context, key string) (storage.Info, error) {
	s, err := f.store(false)
	if err != nil {
		return storage.Info{}, err
	}
	return s.Stat(ctx, key)
}

// List yields what is there.
func (f *lazyLocal) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	s, err := f.store(false)
	if err != nil {
		return func(yield func(storage.Info, error) bool) {
			if !errors.Is(err, storage.ErrNotFound) {
				yield(storage.Info{}, err)
			}
		}
	}
	return s.List(ctx, prefix)
}

// Others yields what is no file.
func (f *lazyLocal) Others(ctx context.Context, prefix string) iter.Seq2[string, error] {
	s, err := f.store(false)
	if err != nil {
		return func(yield func(string, error) bool) {
			if !errors.Is(err, storage.ErrNotFound) {
				yield("", err)
			}
		}
	}
	return s.Others(ctx, prefix)
}

// Delete removes a file.
func (f *lazyLocal) Delete(ctx context.Context, key string) error {
	s, err := f.store(false)
	if err != nil {
		return err
	}
	return s.Delete(ctx, key)
}

// Sweep removes what killed writers left.
func (f *lazyLocal) Sweep(ctx context.Context, prefix string, before time.Time) (int, error) {
	s, err := f.store(false)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return s.Sweep(ctx, prefix, before)
}

// Free is the space on the disk of the folder, or of what is there of its path.
func (f *lazyLocal) Free() (int64, error) {
	dir := f.dir
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return freeSpace(dir)
}
