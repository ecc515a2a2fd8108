package storage

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"time"
)

// List implements Store. Objects that vanish while it walks are left out.
func (l *Local) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return l.folders().list(ctx, prefix, objects)
}

// Others yields the names of what is no object: symlinks, devices, sockets.
// They are never followed or opened.
func (l *Local) Others(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for info, err := range l.folders().list(ctx, prefix, oddities) {
			if !yield(info.Key, err) {
				return
			}
		}
	}
}

// Sweep removes what killed writers left behind under prefix before the given
// moment, and says how much that was.
func (l *Local) Sweep(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	return l.folders().sweep(ctx, prefix, before, l.remove)
}

func (l *Local) folders() folders { return folders{in: l.dir, top: ".", entries: l.entries} }

func (l *Local) entries(_ context.Context, folder string) ([]fs.DirEntry, error) {
	d, err := l.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	return entries, errors.Join(err, d.Close())
}
