package repository

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"time"
)

// Walk visits the files of a backup in the order of their names and keeps collections
// away meanwhile. What visit leaves of a content is not read. Reading one that is not
// as it was stored fails with ErrDamaged.
func (r *Repository) Walk(ctx context.Context, b *Record, visit func(Entry, io.Reader) error) error {
	return r.inTurn(ctx, b, func(ctx context.Context, in *reader, e Entry) (bool, error) {
		return true, visit(e, &content{ctx: ctx, in: in, entry: e, whole: sha256.New()})
	})
}

// inTurn visits the files of a backup one after the other until visit wants no more, and keeps collections
// away meanwhile.
func (r *Repository) inTurn(ctx context.Context, b *Record,
	visit func(context.Context, *reader, Entry) (more bool, err error)) error {
	ctx, release, err := r.reading(ctx)
	if err != nil {
		return err
	}
	defer release()
	in, err := r.newReader()
	if err != nil {
		return err
	}
	defer in.close()
	for e, err := range r.Entries(ctx, b) {
		if err != nil {
			return cause(ctx, err)
		}
		if more, err := visit(ctx, in, e); err != nil || !more {
			return cause(ctx, err)
		}
	}
	return nil
}

// content reads a file of a backup.
type content struct {
	ctx   context.Context
	in    *reader
	entry Entry
	next  int // piece
	rest  []byte
	whole hash.Hash
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.ctx.Err() != nil {
			return 0, context.Cause(c.ctx)
		}
		if c.next == len(c.entry.Pieces) {
			if Sum(c.whole.Sum(nil)) != c.entry.Sum {
				return 0, fmt.Errorf("%w: the content of %s is not the one that was read", ErrDamaged, c.entry.Name)
			}
			return 0, io.EOF
		}
		piece, err := c.in.piece(c.ctx, c.entry.Pieces[c.next])
		if err != nil {
			return 0, err
		}
		c.whole.Write(piece)
		c.rest = piece
		c.next++
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Started is when a backup began, by its ID.
func Started(id string) (time.Time, bool) {
	if _, ok := recordOf(backupsFolder+id+recordEnd, backupsFolder); !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(recordTime, id[:len(recordTime)])
	return at, err == nil
}

// Size is what the objects of the repository take, in bytes.
func (r *Repository) Size(ctx context.Context) (size int64, err error) {
	for info, err := range r.store.List(ctx, objectsFolder) {
		if err != nil {
			return 0, fmt.Errorf("listing the objects of the repository: %w", err)
		}
		size += info.Size
	}
	return size, nil
}
