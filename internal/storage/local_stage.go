package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// stageFolder holds what was staged under a batch's name.
func stageFolder(batch string) string { return tempPrefix + "stage-" + batch }

// Prepare begins a batch. batch is a short word of letters and digits.
func (l *Local) Prepare(_ context.Context, batch string) error {
	if err := l.makeFolder(stageFolder(batch), 0o755); err != nil {
		return fmt.Errorf("making a folder in %s: %w", l.dir, err)
	}
	return nil
}

// Stage writes an object that List and Open do not know until Publish puts all objects
// of its batch in their places. Everybody may read a public one.
func (l *Local) Stage(ctx context.Context, batch, key string, r io.Reader, public bool) (err error) {
	if err := CheckKey(key); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s beside %s: %w", key, l.dir, err)
		}
	}()
	if err := l.replaceable(key); err != nil {
		return err
	}
	staged := path.Join(stageFolder(batch), key)
	if err := l.makeFolder(path.Dir(staged), 0o755); err != nil {
		return err
	}
	if err := l.remove(staged); err != nil { // the batch names it twice
		return err
	}
	how := putting{file: 0o600}
	if public {
		how.file = 0o644
	}
	return l.writeTemp(ctx, staged, r, how)
}

// replaceable says why a file could not take the place of what is there.
func (l *Local) replaceable(key string) error {
	if err := l.plainFolder(path.Dir(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := l.root.Lstat(key); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is there and is no regular file but %s", info.Mode().Type())
	}
	return nil
}

// Publish renames every object of a batch to its key. It may be repeated. A batch that
// was not begun here, or discarded, is ErrNotFound.
func (l *Local) Publish(ctx context.Context, batch string) error {
	folder := stageFolder(batch)
	if _, err := l.root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("files that were written beside %s are not there: %w", l.dir, ErrNotFound)
	}
	changed := map[string]bool{}
	err := fs.WalkDir(l.root.FS(), folder, func(staged string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		key := staged[len(folder)+1:]
		if err := errors.Join(CheckKey(key), l.replaceable(key)); err != nil {
			return err
		}
		if err := l.makeFolder(path.Dir(key), 0o755); err != nil {
			return err
		}
		changed[path.Dir(key)] = true
		return l.root.Rename(staged, key)
	})
	for name := range changed {
		err = errors.Join(err, l.sync(name))
	}
	if err != nil {
		return fmt.Errorf("putting restored files in their places in %s: %w", l.dir, err)
	}
	return nil
}

// Discard removes what is left of a batch.
func (l *Local) Discard(_ context.Context, batch string) error {
	if err := l.root.RemoveAll(stageFolder(batch)); err != nil {
		return fmt.Errorf("removing what was written beside %s: %w", l.dir, err)
	}
	return nil
}

// Prepare makes the folder where it is missing.
func (f *LazyLocal) Prepare(ctx context.Context, batch string) error {
	s, err := f.store(true)
	if err != nil {
		return err
	}
	return s.Prepare(ctx, batch)
}

// Stage writes an object beside the others.
func (f *LazyLocal) Stage(ctx context.Context, batch, key string, r io.Reader, public bool) error {
	s, err := f.store(true)
	if err != nil {
		return err
	}
	return s.Stage(ctx, batch, key, r, public)
}

// Publish renames every object of a batch to its key.
func (f *LazyLocal) Publish(ctx context.Context, batch string) error {
	s, err := f.store(false)
	if err != nil {
		return err
	}
	return s.Publish(ctx, batch)
}

// Discard removes what is left of a batch.
func (f *LazyLocal) Discard(ctx context.Context, batch string) error {
	s, err := f.store(false)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Discard(ctx, batch)
}
