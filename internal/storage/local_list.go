package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
)

// List implements Store. Objects that vanish while it walks are left out.
func (l *Local) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		l.walk(ctx, ".", prefix, objects, yield)
	}
}

// Others yields the names of what is no object: symlinks, devices, sockets.
// They are never followed or opened.
func (l *Local) Others(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l.walk(ctx, ".", prefix, oddities, func(info Info, err error) bool { return yield(info.Key, err) })
	}
}

// sort is what walk looks for.
type sort int

const (
	objects  sort = iota
	temps         // files that are still being written
	oddities      // neither files nor folders
)

func sortOf(e fs.DirEntry) sort {
	switch {
	case !e.Type().IsRegular():
		return oddities
	case strings.HasPrefix(e.Name(), tempPrefix):
		return temps
	}
	return objects
}

// walk yields what is of one sort below folder, in key order.
func (l *Local) walk(ctx context.Context, folder, prefix string, wanted sort, yield func(Info, error) bool) bool {
	entries, err := l.entries(folder)
	if err != nil {
		return yield(Info{}, fmt.Errorf("listing %s in %s: %w", folder, l.dir, err))
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return yield(Info{}, context.Cause(ctx))
		}
		key := path.Join(folder, e.Name())
		switch {
		case e.IsDir() && strings.HasPrefix(e.Name(), tempPrefix): // what Stage wrote
		case e.IsDir():
			under := key + "/"
			if strings.HasPrefix(under, prefix) || strings.HasPrefix(prefix, under) {
				if !l.walk(ctx, key, prefix, wanted, yield) {
					return false
				}
			}
		case sortOf(e) != wanted || !strings.HasPrefix(key, prefix):
		default:
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return yield(Info{}, fmt.Errorf("listing %s in %s: %w", key, l.dir, err))
			}
			if !yield(Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return false
			}
		}
	}
	return true
}

// entries reads a folder in the order of the keys below it: "a-b" comes before
// "a/c", as '-' comes before '/'.
func (l *Local) entries(folder string) ([]fs.DirEntry, error) {
	d, err := l.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return entries, errors.Join(err, d.Close())
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// Sweep removes what killed writers left behind under prefix before the given
// moment, and says how much that was.
func (l *Local) Sweep(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	for info, err := range l.temps(ctx, prefix) {
		if err != nil {
			return removed, err
		}
		if info.Modified.Before(before) {
			if err := l.remove(info.Key); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

func (l *Local) temps(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) { l.walk(ctx, ".", prefix, temps, yield) }
}
