package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
)

// LocalOptions say how a Local opens its folder.
type LocalOptions struct {
	// Create makes the folder (0700) where it is missing. Without it a missing
	// folder is an error, as it is for a media root that is not mounted.
	Create bool
}

// Local keeps objects as files under one folder. Private files are made 0600
// in folders 0700, public ones (PutOptions.Public) 0644 in folders 0755;
// folders that exist stay as they are. All access goes through os.Root.
type Local struct {
	dir  string
	root *os.Root

	lock     sync.Mutex
	unsynced []string // keys that the next Sync makes durable
}

// NewLocal opens a folder as a store; Close releases it.
func NewLocal(dir string, o LocalOptions) (*Local, error) {
	if o.Create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder %s: %w", dir, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	}
	return &Local{dir: dir, root: root}, nil
}

// Close releases the folder.
func (l *Local) Close() error { return l.root.Close() }

// String is the store's place, for messages and pages.
func (l *Local) String() string { return l.dir }

// Put writes to a temporary name in the key's own folder, then fsync, rename
// and fsync of the folder: what is under key survives a power cut whole.
func (l *Local) Put(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	how := putting{file: 0o600, folder: 0o700}
	if o.Public {
		how = putting{file: 0o644, folder: 0o755}
	}
	return l.put(ctx, key, r, how)
}

// putting says how an object is written.
type putting struct {
	file, folder fs.FileMode
	unsynced     bool // Sync makes it durable
}

func (l *Local) put(ctx context.Context, key string, r io.Reader, how putting) (err error) {
	if err := CheckKey(key); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s in %s: %w", key, l.dir, err)
		}
	}()
	folder := path.Dir(key)
	if err := l.makeFolder(folder, how.folder); err != nil {
		return err
	}
	if info, err := l.root.Lstat(key); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is there and is no regular file but %s", info.Mode().Type())
	}
	temp := path.Join(folder, tempPrefix+rand.Text())
	if err := l.writeTemp(ctx, temp, r, how); err != nil {
		return errors.Join(err, l.remove(temp))
	}
	if err := l.root.Rename(temp, key); err != nil {
		return errors.Join(err, l.remove(temp))
	}
	if how.unsynced {
		return nil
	}
	return l.sync(folder)
}

func (l *Local) writeTemp(ctx context.Context, temp string, r io.Reader, how putting) error {
	f, err := l.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, how.file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, contextReader{ctx, r})
	if err == nil {
		err = f.Chmod(how.file) // whatever the umask says: a web server reads the public ones
	}
	switch {
	case err != nil:
	case how.unsynced:
		BeginSync(f)
	default:
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeFolder makes a folder and those above it, and makes their names durable.
func (l *Local) makeFolder(folder string, mode fs.FileMode) error {
	if err := l.plainFolder(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := l.makeFolder(path.Dir(folder), mode); err != nil {
		return err
	}
	if err := l.root.Mkdir(folder, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return l.sync(path.Dir(folder))
}

// plainFolder refuses a folder that is reached through a symlink. os.Root
// would follow one that stays inside; two keys would then name one file.
func (l *Local) plainFolder(folder string) error {
	for i, c := range folder + "/" {
		if c != '/' {
			continue
		}
		info, err := l.root.Lstat(folder[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no folder but %s", folder[:i], info.Mode().Type())
		}
	}
	return nil
}

func (l *Local) sync(folder string) error {
	d, err := l.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (l *Local) remove(name string) error {
	if err := l.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a leftover could not be removed: %w", err)
	}
	return nil
}

// Open implements Store.
func (l *Local) Open(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	info, err := l.Stat(ctx, key)
	if err != nil {
		return nil, Info{}, err
	}
	f, err := l.root.Open(key)
	if err != nil {
		return nil, Info{}, l.failed("reading", key, err)
	}
	opened, err := f.Stat() // the file may have been replaced since
	if err != nil || !opened.Mode().IsRegular() {
		return nil, Info{}, l.failed("reading", key, errors.Join(err, f.Close(), fs.ErrNotExist))
	}
	info.Size, info.Modified = opened.Size(), opened.ModTime()
	return f, info, nil
}

// Stat implements Store. Symlinks, folders and devices are no objects.
func (l *Local) Stat(_ context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	if err := l.plainFolder(path.Dir(key)); err != nil {
		return Info{}, l.failed("looking for", key, err)
	}
	info, err := l.root.Lstat(key)
	if err != nil {
		return Info{}, l.failed("looking for", key, err)
	}
	if !info.Mode().IsRegular() {
		return Info{}, l.failed("looking for", key, fs.ErrNotExist)
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

func (l *Local) failed(doing, key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	return fmt.Errorf("%s %s in %s: %w", doing, key, l.dir, err)
}

// Delete implements Store. Folders that become empty stay.
func (l *Local) Delete(ctx context.Context, key string) error {
	return l.DeleteAll(ctx, []string{key})
}

// DeleteAll removes objects; those that are not there are no error. Each folder is
// synced once, at the end.
func (l *Local) DeleteAll(ctx context.Context, keys []string) (err error) {
	folders := map[string]bool{}
	defer func() {
		for folder := range folders {
			err = errors.Join(err, l.sync(folder))
		}
	}()
	for i, key := range keys {
		if i > 0 && ctx.Err() != nil { // one is always deleted, as where a cancelled writer clears up
			return context.Cause(ctx)
		}
		if _, err := l.Stat(ctx, key); errors.Is(err, ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		if err := l.root.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("deleting %s in %s: %w", key, l.dir, err)
		}
		folders[path.Dir(key)] = true
	}
	return nil
}
