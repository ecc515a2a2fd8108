package repository

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RestoreRequest says what is restored and where to.
type RestoreRequest struct {
	Backup *Record
	// Into is a folder, which is made: LABEL/PATH come below it. Files that the
	// backup does not have stay.
	Into string
	// Wanted says whether a file is restored; nil restores all. See Under.
	Wanted func(name string) bool
	// Progress is called with what is done so far; nil is nothing to call.
	Progress func(files, bytes int64)
}

// Under wants the files and folders with these names (LABEL/PATH).
func Under(names ...string) func(name string) bool {
	return func(name string) bool {
		for _, n := range names {
			n = strings.Trim(n, "/")
			if name == n || strings.HasPrefix(name, n+"/") {
				return true
			}
		}
		return false
	}
}

// Restored says what a restore did.
type Restored struct {
	Files, Bytes int64
	// Failed are the files that could not be restored, at most maxWarnings of them,
	// and why.
	Failed map[string]error
	// Failures is the number of all.
	Failures int64
}

// reading takes a lock that keeps collections away. Where the store cannot be
// written to, nothing deletes from it either.
func (r *Repository) reading(ctx context.Context) (context.Context, func(), error) {
	held, l, err := r.acquire(ctx, forRead)
	var busy *BusyError
	switch {
	case err == nil:
		return held, func() { l.release(ctx) }, nil
	case errors.As(err, &busy):
		return ctx, nil, err
	}
	r.o.Logger.WarnContext(ctx, "repository read without a lock: do not prune it meanwhile",
		"event", "repository.unlocked", "error", err)
	return ctx, func() {}, nil
}

// restoreUnit is how many files that begin in one object a worker takes at once.
const restoreUnit = 4096

// Restore brings files back. Each is checked before it takes its name; one that is
// damaged is not written. The error is nil only if all wanted files are there.
func (r *Repository) Restore(ctx context.Context, q RestoreRequest) (*Restored, error) {
	ctx, release, err := r.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := os.MkdirAll(q.Into, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder to restore into: %w", err)
	}
	root, err := os.OpenRoot(q.Into)
	if err != nil {
		return nil, fmt.Errorf("opening the folder to restore into: %w", err)
	}
	defer root.Close()
	to := &target{Repository: r, q: q, root: root, done: Restored{Failed: map[string]error{}}}
	err = r.each(ctx, q.Backup, q.Wanted, func(ctx context.Context, in *reader, e Entry) error {
		return to.file(ctx, in, e)
	})
	to.done.Files, to.done.Bytes = to.files.Load(), to.bytes.Load()
	if err == nil && to.done.Failures > 0 {
		err = fmt.Errorf("%d files could not be restored", to.done.Failures)
	}
	return &to.done, err
}

// each calls what do does for every wanted file, by several workers. Files that lie
// side by side in an object are one worker's.
func (r *Repository) each(ctx context.Context, b *Record, wanted func(string) bool,
	do func(context.Context, *reader, Entry) error) error {
	g, ctx := errgroup.WithContext(ctx)
	units := make(chan []Entry, r.o.Workers)
	for range r.o.Workers {
		g.Go(func() error {
			in, err := r.newReader()
			if err != nil {
				return err
			}
			defer in.close()
			for unit := range units {
				for _, e := range unit {
					if err := do(ctx, in, e); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(units)
		return r.units(ctx, b, wanted, units)
	})
	return g.Wait()
}

// units sends the wanted files, those that begin in one object together.
func (r *Repository) units(ctx context.Context, b *Record, wanted func(string) bool, units chan<- []Entry) error {
	var unit []Entry
	for e, err := range r.Entries(ctx, b) {
		if err != nil {
			return err
		}
		if wanted != nil && !wanted(e.Name) {
			continue
		}
		if len(unit) > 0 && (len(unit) == restoreUnit || firstObject(unit[0]) != firstObject(e)) {
			if !send(ctx, units, unit) {
				return context.Cause(ctx)
			}
			unit = nil
		}
		unit = append(unit, e)
	}
	if len(unit) > 0 && !send(ctx, units, unit) {
		return context.Cause(ctx)
	}
	return nil
}

func firstObject(e Entry) string {
	if len(e.Pieces) == 0 {
		return ""
	}
	return e.Pieces[0].Object
}

// target is a folder that files are restored into.
type target struct {
	*Repository
	q            RestoreRequest
	root         *os.Root
	files, bytes atomic.Int64
	folders      sync.Map // that were made
	lock         sync.Mutex
	done         Restored
}

// file restores one file. Only what concerns all files is an error.
func (t *target) file(ctx context.Context, in *reader, e Entry) error {
	err := t.write(ctx, in, e)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		if errors.Is(err, ErrLocked) {
			return err
		}
		t.lock.Lock()
		defer t.lock.Unlock()
		if t.done.Failures++; len(t.done.Failed) < maxWarnings {
			t.done.Failed[e.Name] = err
		}
		return nil
	}
	files, bytes := t.files.Add(1), t.bytes.Add(e.Size)
	if t.q.Progress != nil {
		t.q.Progress(files, bytes)
	}
	return nil
}

func (t *target) write(ctx context.Context, in *reader, e Entry) (err error) {
	name := filepath.FromSlash(e.Name)
	folder := path.Dir(e.Name)
	if _, made := t.folders.Load(folder); !made {
		if err := t.root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return err
		}
		t.folders.Store(folder, true)
	}
	temp := filepath.Join(filepath.FromSlash(folder), ".cmsjobs-tmp-"+rand.Text())
	f, err := t.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(t.root.Remove(temp)))
		}
	}()
	err = in.copy(ctx, f, e)
	if err == nil {
		err = f.Chmod(e.Mode.Perm())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := t.root.Chtimes(temp, time.Time{}, e.Modified); err != nil {
		return err
	}
	return t.root.Rename(temp, name)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Copy writes one file of a backup to w. storage.ErrNotFound when the backup does
// not have it.
func (r *Repository) Copy(ctx context.Context, b *Record, name string, w io.Writer) error {
	found := false
	if err := r.inTurn(ctx, b, func(ctx context.Context, in *reader, e Entry) (more bool, err error) {
		if found = e.Name == name; found {
			err = in.copy(ctx, w, e)
		}
		return !found, err
	}); err != nil || found {
		return err
	}
	return fmt.Errorf("the backup %s has no file %s: %w", b.ID, name, storage.ErrNotFound)
}
