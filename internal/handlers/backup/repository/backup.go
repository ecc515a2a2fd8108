package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Backup makes a backup. Files that cannot be read make it Partial; everything
// else that fails leaves no backup, and objects that a later collection deletes.
func (r *Repository) Backup(ctx context.Context, q Request) (*Report, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	before := r.Operations()
	ctx, l, err := r.acquire(ctx, forBackup)
	if err != nil {
		return nil, err
	}
	defer l.release(ctx)
	b := &run{Repository: r, q: q, name: l.run, started: r.o.Now().UTC().Truncate(time.Millisecond),
		created: map[string]int64{}}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if err := b.files(ctx); err != nil {
		return nil, fmt.Errorf("backing up files: %w", cause(ctx, err))
	}
	if err := b.commit(ctx, l); err != nil {
		return nil, fmt.Errorf("completing the backup: %w", cause(ctx, err))
	}
	b.report.Run = b.name
	b.report.Read, b.report.Objects = b.read.Load(), int64(len(b.created))
	b.report.Operations = r.Operations().since(before)
	b.report.Operations.Deletes++ // of the lock
	return &b.report, nil
}

// cause says why a context ended, where that is the reason of an error.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); ctx.Err() != nil && !errors.Is(err, why) {
		return errors.Join(why, err)
	}
	return err
}

// prepare looks at what there is.
func (b *run) prepare(ctx context.Context) error {
	b.present = map[string]int64{}
	for info, err := range b.store.List(ctx, objectsFolder) {
		if err != nil {
			return fmt.Errorf("listing the objects of the repository: %w", err)
		}
		if name, ok := objectOf(info.Key); ok {
			b.present[name] = info.Size
		}
	}
	if err := b.findBase(ctx); err != nil {
		return err
	}
	if b.base != nil {
		for name, size := range b.base.Objects {
			if b.present[name] != size {
				b.report.Lost++
				delete(b.present, name)
			}
		}
	}
	if b.report.Lost > 0 {
		b.warn("%d objects of the last backup are missing: what was in them is stored again; "+
			"verify the earlier backups", b.report.Lost)
	}
	b.known = sync.OnceValue(func() *index { return b.indexBase(ctx) })
	b.records = newRecorder(b)
	b.sealed = make(chan *bytes.Buffer, putsAtOnce)
	for range putsAtOnce {
		b.sealed <- nil // made when it is needed
	}
	return nil
}

// findBase finds the newest backup whose record is right.
func (b *run) findBase(ctx context.Context) error {
	ids, err := b.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		b.base, err = b.Load(ctx, id)
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		b.warn("the backup %s cannot be used: %v", id, err)
	}
	b.base = nil
	return nil
}

func (b *run) indexBase(ctx context.Context) *index {
	x := newIndex()
	if b.base == nil {
		return x
	}
	for e, err := range b.Entries(ctx, b.base) {
		if err != nil {
			break // the walk says so
		}
		if b.has(e.Pieces...) {
			for _, p := range e.Pieces {
				x.add(p)
			}
		}
	}
	return x
}

// inFlight is how many files are read before the first of them is written down.
const inFlight = 16

// files takes all files through four steps: find them, read those that changed, put
// small ones together, and write the manifest. Order stays that of the names.
func (b *run) files(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	ordered, todo := make(chan *item, inFlight), make(chan *item, inFlight)
	segments := make(chan *segment, 1)
	g.Go(func() error {
		defer close(ordered)
		defer close(todo)
		return b.find(ctx, ordered, todo)
	})
	for range b.o.Workers {
		g.Go(func() error { return b.work(ctx, todo) })
	}
	g.Go(func() error {
		defer close(segments)
		return b.assemble(ctx, g, ordered, segments)
	})
	g.Go(func() error { return b.records.write(ctx, segments) })
	return g.Wait()
}
