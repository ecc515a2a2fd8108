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

// folders are the files of a store that has its objects as files below one folder.
type folders struct {
	in  string // the store's place, for errors
	top string // the name of the uppermost folder
	// entries reads a folder; one that is not there has none.
	entries func(ctx context.Context, folder string) ([]fs.DirEntry, error)
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

// list yields what is of one sort under prefix, in key order.
func (f folders) list(ctx context.Context, prefix string, wanted sort) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) { f.walk(ctx, f.top, prefix, wanted, yield) }
}

// sweep removes what killed writers left behind under prefix before the given moment, and
// returns how much that was.
func (f folders) sweep(ctx context.Context, prefix string, before time.Time, remove func(key string) error) (n int,
	err error) {
	for info, err := range f.list(ctx, prefix, temps) {
		if err != nil {
			return n, err
		}
		if !info.Modified.Before(before) {
			continue
		}
		if err := remove(info.Key); err != nil {
			return n, fmt.Errorf("removing the unfinished %s in %s: %w", info.Key, f.in, err)
		}
		n++
	}
	return n, nil
}

// walk yields what is of one sort below folder, in key order.
func (f folders) walk(ctx context.Context, folder, prefix string, wanted sort, yield func(Info, error) bool) bool {
	entries, err := f.inKeyOrder(ctx, folder)
	if err != nil {
		return yield(Info{}, fmt.Errorf("listing %s in %s: %w", folder, f.in, err))
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
				if !f.walk(ctx, key, prefix, wanted, yield) {
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
				return yield(Info{}, fmt.Errorf("listing %s in %s: %w", key, f.in, err))
			}
			if !yield(Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return false
			}
		}
	}
	return true
}

// inKeyOrder reads a folder in the order of the keys below it: "a-b" comes before
// "a/c", as '-' comes before '/'.
func (f folders) inKeyOrder(ctx context.Context, folder string) ([]fs.DirEntry, error) {
	entries, err := f.entries(ctx, folder)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return entries, err
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}
