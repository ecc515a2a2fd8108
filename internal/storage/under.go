package storage

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Folder is the part of a store whose keys begin with a prefix.
type Folder struct {
	Store
	prefix string // ends in "/"
}

// Under is the part of a store below a folder, whose name ends in "/".
func Under(s Store, folder string) *Folder { return &Folder{s, folder} }

// String is the folder's place, for messages and pages.
func (f *Folder) String() string {
	if named, ok := f.Store.(fmt.Stringer); ok {
		return named.String() + "/" + strings.TrimSuffix(f.prefix, "/")
	}
	return f.prefix
}

// Put implements Store.
func (f *Folder) Put(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	return f.Store.Put(ctx, f.prefix+key, r, o)
}

// Open implements Store.
func (f *Folder) Open(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	body, info, err := f.Store.Open(ctx, f.prefix+key)
	return body, f.inside(info), err
}

// Stat implements Store.
func (f *Folder) Stat(ctx context.Context, key string) (Info, error) {
	info, err := f.Store.Stat(ctx, f.prefix+key)
	return f.inside(info), err
}

// List implements Store.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range f.Store.List(ctx, f.prefix+prefix) {
			if !yield(f.inside(info), err) {
				return
			}
		}
	}
}

// Delete implements Store.
func (f *Folder) Delete(ctx context.Context, key string) error {
	return f.Store.Delete(ctx, f.prefix+key)
}

// DeleteAll removes objects, with few calls where the store can.
func (f *Folder) DeleteAll(ctx context.Context, keys []string) error {
	whole := make([]string, len(keys))
	for i, key := range keys {
		whole[i] = f.prefix + key
	}
	if many, can := f.Store.(interface {
		DeleteAll(ctx context.Context, keys []string) error
	}); can {
		return many.DeleteAll(ctx, whole)
	}
	for _, key := range whole {
		if err := f.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// unsyncedStore makes many objects durable with one call; see Local.
type unsyncedStore interface {
	PutUnsynced(ctx context.Context, key string, r io.Reader, o PutOptions) error
	Sync(ctx context.Context) error
}

// PutUnsynced is Put where the store makes each object durable by itself.
func (f *Folder) PutUnsynced(ctx context.Context, key string, r io.Reader, o PutOptions) error {
	if s, can := f.Store.(unsyncedStore); can {
		return s.PutUnsynced(ctx, f.prefix+key, r, o)
	}
	return f.Put(ctx, key, r, o)
}

// Sync makes durable what PutUnsynced wrote.
func (f *Folder) Sync(ctx context.Context) error {
	if s, can := f.Store.(unsyncedStore); can {
		return s.Sync(ctx)
	}
	return nil
}

// Sweep removes what killed writers left, where the store knows that.
func (f *Folder) Sweep(ctx context.Context, prefix string, before time.Time) (int, error) {
	if s, can := f.Store.(interface {
		Sweep(ctx context.Context, prefix string, before time.Time) (int, error)
	}); can {
		return s.Sweep(ctx, f.prefix+prefix, before)
	}
	return 0, nil
}

func (f *Folder) inside(i Info) Info {
	i.Key = strings.TrimPrefix(i.Key, f.prefix)
	return i
}
