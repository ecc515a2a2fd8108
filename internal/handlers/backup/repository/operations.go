package repository

import (
	"context"
	"io"
	"iter"
	"sync/atomic"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Operations counts what was asked of a store. In a bucket each is one request, as
// objects are smaller than the parts of an upload and a list has 1,000 keys a page.
type Operations struct {
	Puts, Reads, Stats, Lists, Deletes int64
	// Written are the bytes that were put.
	Written int64
}

// Requests is the sum of all operations.
func (o Operations) Requests() int64 { return o.Puts + o.Reads + o.Stats + o.Lists + o.Deletes }

// since is what was added after earlier.
func (o Operations) since(earlier Operations) Operations {
	return Operations{
		o.Puts - earlier.Puts, o.Reads - earlier.Reads, o.Stats - earlier.Stats,
		o.Lists - earlier.Lists, o.Deletes - earlier.Deletes, o.Written - earlier.Written,
	}
}

// counted is a store that counts.
type counted struct {
	storage.Store
	puts, reads, stats, lists, deletes, written atomic.Int64
}

func (c *counted) operations() Operations {
	return Operations{c.puts.Load(), c.reads.Load(), c.stats.Load(), c.lists.Load(), c.deletes.Load(), c.written.Load()}
}

func (c *counted) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	c.puts.Add(1)
	return c.Store.Put(ctx, key, countedReader{r, &c.written}, o)
}

// syncer is implemented by stores that make many objects durable with one call. What
// PutUnsynced wrote may be lost, or torn, in a power cut before Sync.
type syncer interface {
	PutUnsynced(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error
	Sync(ctx context.Context) error
}

// putUnsynced stores an object that is durable after sync.
func (c *counted) putUnsynced(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	s, can := c.Store.(syncer)
	if !can {
		return c.Put(ctx, key, r, o)
	}
	c.puts.Add(1)
	return s.PutUnsynced(ctx, key, countedReader{r, &c.written}, o)
}

func (c *counted) sync(ctx context.Context) error {
	if s, can := c.Store.(syncer); can {
		return s.Sync(ctx)
	}
	return nil
}

func (c *counted) Open(ctx context.Context, key string) (io.ReadCloser, storage.Info, error) {
	c.reads.Add(1)
	return c.Store.Open(ctx, key)
}

func (c *counted) Stat(ctx context.Context, key string) (storage.Info, error) {
	c.stats.Add(1)
	return c.Store.Stat(ctx, key)
}

// page is how many keys one answer to a list has.
const page = 1000

func (c *counted) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		n := 0
		c.lists.Add(1)
		for info, err := range c.Store.List(ctx, prefix) {
			if n > 0 && n%page == 0 {
				c.lists.Add(1)
			}
			n++
			if !yield(info, err) {
				return
			}
		}
	}
}

func (c *counted) Delete(ctx context.Context, key string) error {
	c.deletes.Add(1)
	return c.Store.Delete(ctx, key)
}

// deleter is implemented by stores that delete many objects with one request.
type deleter interface {
	DeleteAll(ctx context.Context, keys []string) error
}

// deleteAll deletes at most page objects.
func (c *counted) deleteAll(ctx context.Context, keys []string) error {
	if many, can := c.Store.(deleter); can {
		c.deletes.Add(1)
		return many.DeleteAll(ctx, keys)
	}
	for _, key := range keys {
		if err := c.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

type countedReader struct {
	io.Reader
	n *atomic.Int64
}

func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
