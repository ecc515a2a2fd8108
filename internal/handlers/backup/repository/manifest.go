package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// A manifest's text is cut where the names of files say so, so that the parts of it
// that stay the same from backup to backup are stored once.
const (
	minCut  = 64 << 10
	maxCut  = 1 << 20
	cutEach = 512 // files, on the average
)

func cutsBefore(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum32()%cutEach == 0
}

// manifestWriter makes the pieces of a manifest.
type manifestWriter struct {
	text  []byte
	piece func(text []byte) error
}

func (m *manifestWriter) add(e Entry) error {
	if len(m.text) >= maxCut || len(m.text) >= minCut && cutsBefore(e.Name) {
		if err := m.flush(); err != nil {
			return err
		}
	}
	pieces := e.Pieces
	e.Pieces = nil
	m.text = e.appendTo(m.text)
	for _, p := range pieces { // a file of terabytes has more lines than one piece holds
		if len(m.text) >= 2*maxCut {
			if err := m.flush(); err != nil {
				return err
			}
		}
		m.text = fmt.Appendf(m.text, "p\t%s\n", p.fields(&e.Sum))
	}
	return nil
}

func (m *manifestWriter) flush() error {
	if len(m.text) == 0 {
		return nil
	}
	err := m.piece(m.text)
	m.text = m.text[:0]
	return err
}

// Entries yields the files of a backup in the order of their names.
func (r *Repository) Entries(ctx context.Context, b *Record) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		stopped := false
		each := func(e Entry) bool {
			stopped = !yield(e, nil)
			return !stopped
		}
		if err := r.entries(ctx, b, each); err != nil && !stopped {
			yield(Entry{}, fmt.Errorf("reading the manifest of the backup %s: %w", b.ID, err))
		}
	}
}

func (r *Repository) entries(ctx context.Context, b *Record, yield func(Entry) bool) error {
	in, err := r.newReader()
	if err != nil {
		return err
	}
	defer in.close()
	cache, err := r.openCache()
	if err != nil {
		return err
	}
	defer cache.close()
	d := &decoder{}
	for _, p := range b.Manifest {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text := cache.load(ctx, p)
		if text == nil {
			if text, err = in.piece(ctx, p); err != nil {
				return err
			}
			cache.save(ctx, p.Sum, text)
		}
		if more, err := d.feed(text, yield); !more || err != nil {
			return err
		}
	}
	return d.end(yield)
}

// cache keeps the texts of manifests in a local folder, by their sums. It is never
// needed: what is damaged or missing there is read from the repository.
type cache struct {
	store  *storage.Local
	packer *packer
	reader *reader
}

func (r *Repository) openCache() (*cache, error) {
	c := &cache{}
	if r.o.Cache == "" {
		return c, nil
	}
	var err error
	if c.packer, err = newPacker(); err != nil {
		return nil, err
	}
	if c.reader, err = r.newReader(); err != nil {
		return nil, err
	}
	if c.store, err = storage.NewLocal(r.o.Cache, storage.LocalOptions{Create: true}); err != nil {
		c.close()
		return nil, fmt.Errorf("opening the cache of manifests: %w", err)
	}
	return c, nil
}

func (c *cache) close() {
	if c.reader != nil {
		c.reader.close()
	}
	if c.store != nil {
		_ = c.store.Close() // nothing is written any more
	}
}

func cacheKey(sum Sum) string { return "manifest-" + sum.String() + recordEnd }

// load returns nil where the cache has nothing.
func (c *cache) load(ctx context.Context, p Piece) []byte {
	if c.store == nil {
		return nil
	}
	packed, err := readBounded(ctx, c.store, cacheKey(p.Sum), maxObject)
	if err != nil {
		return nil
	}
	text, err := c.reader.zstd.DecodeAll(packed, nil)
	if err != nil || int64(len(text)) != p.Length || Sum(sha256.Sum256(text)) != p.Sum {
		return nil
	}
	return text
}

func (c *cache) save(ctx context.Context, sum Sum, text []byte) {
	if c.store == nil {
		return
	}
	if _, err := c.store.Stat(ctx, cacheKey(sum)); err == nil {
		return
	}
	c.packer.buf = c.packer.zstd.EncodeAll(text, c.packer.buf[:0])
	// A cache that cannot be written costs time later, nothing else.
	_ = c.store.Put(ctx, cacheKey(sum), bytes.NewReader(c.packer.buf), storage.PutOptions{})
}

// keepOnly removes the texts that a backup does not have.
func (c *cache) keepOnly(ctx context.Context, b *Record) error {
	if c.store == nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, p := range b.Manifest {
		wanted[cacheKey(p.Sum)] = true
	}
	var errs []error
	for info, err := range c.store.List(ctx, "manifest-") {
		if err == nil && !wanted[info.Key] {
			err = c.store.Delete(ctx, info.Key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
