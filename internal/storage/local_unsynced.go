package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sync/errgroup"
)

// PutUnsynced is Put of a private object that Sync makes durable: until then a power
// cut may leave it empty, torn or absent. Its writing to the disk begins at once.
func (l *Local) PutUnsynced(ctx context.Context, key string, r io.Reader, _ PutOptions) error {
	if err := l.put(ctx, key, r, putting{file: 0o600, folder: 0o700, unsynced: true}); err != nil {
		return err
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.unsynced = append(l.unsynced, key)
	return nil
}

// syncsAtOnce is how many files are synced at the same time: the file system then
// commits many with one write.
const syncsAtOnce = 8

// Sync makes every object durable that PutUnsynced wrote before it is called. After an
// error it is not known which are.
func (l *Local) Sync(ctx context.Context) error {
	l.lock.Lock()
	keys := l.unsynced
	l.unsynced = nil
	l.lock.Unlock()
	folders := map[string]bool{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(syncsAtOnce)
	for _, key := range keys {
		folders[path.Dir(key)] = true
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return l.syncFile(key)
		})
	}
	err := g.Wait()
	for folder := range folders {
		err = errors.Join(err, l.sync(folder))
	}
	if err != nil {
		return fmt.Errorf("syncing %s: %w", l.dir, err)
	}
	return nil
}

// syncFile makes a file's content durable, unless it is deleted by now.
func (l *Local) syncFile(key string) error {
	f, err := l.root.OpenFile(key, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// PutUnsynced makes the folder where it is missing.
func (f *LazyLocal) PutUnsynced(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	s, err := f.store(true)
	if err != nil {
		return err
	}
	return s.PutUnsynced(ctx, key, r, o)
}

// Sync makes everything durable that PutUnsynced wrote.
func (f *LazyLocal) Sync(ctx context.Context) error {
	s, err := f.store(false)
	if err != nil {
		return err
	}
	return s.Sync(ctx)
}
