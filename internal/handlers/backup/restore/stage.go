package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// stager is a store that takes files beside the present ones. Publish puts all of a
// batch in their places; Discard removes them. Both may be repeated.
type stager interface {
	Prepare(ctx context.Context, batch string) error
	Stage(ctx context.Context, batch, key string, r io.Reader, public bool) error
	Publish(ctx context.Context, batch string) error
	Discard(ctx context.Context, batch string) error
}

func stagerOf(s storage.Store) stager {
	if own, is := s.(stager); is {
		return own
	}
	return copying{s}
}

// copying stages in a store that cannot rename: under another prefix, what everybody
// may read and what not in two folders.
type copying struct{ store storage.Store }

func copyPrefix(batch string) string { return "cmsjobs-restore-" + batch + "/" }

func (c copying) Prepare(context.Context, string) error { return nil }

const (
	stagedPublic  = "public/"
	stagedPrivate = "private/"
)

func (c copying) Stage(ctx context.Context, batch, key string, r io.Reader, public bool) error {
	folder := stagedPrivate
	if public {
		folder = stagedPublic
	}
	return c.store.Put(ctx, copyPrefix(batch)+folder+key, r, storage.PutOptions{})
}

func (c copying) Publish(ctx context.Context, batch string) error {
	return c.each(ctx, batch, func(staged, name string) error {
		key, public := strings.CutPrefix(name, stagedPublic)
		if !public {
			key = strings.TrimPrefix(name, stagedPrivate)
		}
		from, info, err := c.store.Open(ctx, staged)
		if err != nil {
			return err
		}
		err = c.store.Put(ctx, key, from, storage.PutOptions{Public: public, ExpectedSize: max(info.Size, 0)})
		return errors.Join(err, from.Close())
	})
}

func (c copying) Discard(ctx context.Context, batch string) error {
	return c.each(ctx, batch, func(string, string) error { return nil })
}

// each visits the staged objects and deletes them one by one.
func (c copying) each(ctx context.Context, batch string, visit func(staged, key string) error) error {
	for info, err := range c.store.List(ctx, copyPrefix(batch)) {
		if err == nil {
			err = visit(info.Key, strings.TrimPrefix(info.Key, copyPrefix(batch)))
		}
		if err == nil {
			err = c.store.Delete(ctx, info.Key)
		}
		if err != nil {
			return fmt.Errorf("putting restored files in their places: %w", err)
		}
	}
	return nil
}

// eachSet runs do for the folders of an entry.
func (r *Restorer) eachSet(e *entry, do func(stager) error) error {
	var failed []error
	for _, label := range e.detail.Files {
		set, known := r.fileSet(label)
		if !known {
			failed = append(failed, fmt.Errorf("the folder %s, into which files are restored, is not configured any "+
				"more", label))
			continue
		}
		failed = append(failed, do(stagerOf(set.Store)))
	}
	return errors.Join(failed...)
}

func (r *Restorer) fileSet(label string) (fileset.Set, bool) {
	for _, set := range r.config.Files {
		if set.Label == label {
			return set, true
		}
	}
	return fileset.Set{}, false
}
