package repository

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// cachedObjects is how many objects a reader keeps: the files of a folder are
// mostly in one, and those that changed in another.
const cachedObjects = 2

// cachedObject is an object, decrypted. Its memory is used again for the next.
type cachedObject struct {
	name  string
	plain []byte
}

// reader reads pieces. It belongs to one goroutine.
type reader struct {
	*Repository
	zstd    *zstd.Decoder
	objects []*cachedObject // the last one used is the last
	buf     []byte
}

func (r *reader) close() { r.zstd.Close() }

// object reads an object and decrypts it. The result is valid until the next call.
func (r *reader) object(ctx context.Context, name string) ([]byte, error) {
	for i, o := range r.objects {
		if o.name == name {
			r.objects = append(slices.Delete(r.objects, i, i+1), o)
			return o.plain, nil
		}
	}
	var o *cachedObject
	if len(r.objects) < cachedObjects {
		o = &cachedObject{plain: objectBuffer()}
	} else {
		o, r.objects = r.objects[0], r.objects[1:]
	}
	o.name = name
	var err error
	if o.plain, err = readObject(ctx, o.plain, r.store, name, true, r.o.Identities); err != nil {
		return nil, err
	}
	r.objects = append(r.objects, o)
	return o.plain, nil
}

// piece reads a piece and checks it. The result is valid until the next call.
func (r *reader) piece(ctx context.Context, p Piece) ([]byte, error) {
	object, err := r.object(ctx, p.Object)
	if err != nil {
		return nil, err
	}
	if p.Offset+p.Stored > int64(len(object)) {
		return nil, fmt.Errorf("%w: %s is shorter than it was", ErrDamaged, p.Object)
	}
	content := object[p.Offset : p.Offset+p.Stored]
	if p.Packed {
		if r.buf, err = r.zstd.DecodeAll(content, r.buf[:0]); err != nil {
			return nil, fmt.Errorf("%w: unpacking %d bytes at %d of %s: %w", ErrDamaged, p.Stored, p.Offset, p.Object,
				err)
		}
		content = r.buf
	}
	if int64(len(content)) != p.Length || Sum(sha256.Sum256(content)) != p.Sum {
		return nil, fmt.Errorf("%w: %d bytes at %d of %s are not those that were stored", ErrDamaged, p.Stored,
			p.Offset, p.Object)
	}
	return content, nil
}

// copy writes the content of a file and checks it.
func (r *reader) copy(ctx context.Context, w io.Writer, e Entry) error {
	whole := sha256.New()
	for _, p := range e.Pieces {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		content, err := r.piece(ctx, p)
		if err != nil {
			return err
		}
		if len(e.Pieces) > 1 {
			whole.Write(content)
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	sum := Sum(whole.Sum(nil))
	if len(e.Pieces) == 1 { // it was checked
		sum = e.Pieces[0].Sum
	}
	if sum != e.Sum {
		return fmt.Errorf("%w: the content of %s is not the one that was read", ErrDamaged, e.Name)
	}
	return nil
}

func (r *Repository) newReader() (*reader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(pieceSize), zstd.WithDecoderMaxWindow(pieceSize))
	if err != nil {
		return nil, fmt.Errorf("preparing decompression: %w", err)
	}
	return &reader{Repository: r, zstd: z}, nil
}
