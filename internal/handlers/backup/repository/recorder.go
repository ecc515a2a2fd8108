package repository

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// recorder writes the manifest.
type recorder struct {
	*run
	manifest *manifestWriter
	pieces   []Piece
	shared   []int // of pieces: those that are in object
	object   []byte
	packer   *packer
	old      map[Sum]Piece    // of the base's manifest
	objects  map[string]int64 // that the backup needs
	files    int64
	bytes    int64
}

func newRecorder(b *run) *recorder {
	r := &recorder{run: b, old: map[Sum]Piece{}, objects: map[string]int64{}}
	r.manifest = &manifestWriter{}
	if b.base != nil {
		for _, p := range b.base.Manifest {
			if b.has(p) {
				r.old[p.Sum] = p
			}
		}
	}
	return r
}

// write writes segments down, in order, as their objects are stored.
func (r *recorder) write(ctx context.Context, segments <-chan *segment) error {
	cache, err := r.openCache()
	if err != nil {
		return err
	}
	defer cache.close()
	if r.packer, err = newPacker(); err != nil {
		return err
	}
	r.manifest.piece = func(text []byte) error {
		cache.save(ctx, sha256.Sum256(text), text)
		return r.piece(ctx, text)
	}
	for s := range segments {
		select {
		case <-s.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, it := range s.items {
			if err := r.add(it.entry); err != nil {
				return err
			}
		}
	}
	if err := r.manifest.flush(); err != nil {
		return err
	}
	return r.flush(ctx)
}

func (r *recorder) add(e Entry) error {
	for _, p := range e.Pieces {
		if err := r.need(p.Object); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	r.files++
	r.bytes += e.Size
	if r.q.Progress != nil {
		r.q.Progress(r.files, r.bytes)
	}
	return r.manifest.add(e)
}

// need adds an object to those that the backup names.
func (r *recorder) need(object string) error {
	if _, named := r.objects[object]; named {
		return nil
	}
	size, err := r.size(object)
	r.objects[object] = size
	return err
}

// piece stores a part of the manifest, unless the last backup had the same.
func (r *recorder) piece(ctx context.Context, text []byte) error {
	sum := Sum(sha256.Sum256(text))
	if p, known := r.old[sum]; known {
		r.pieces = append(r.pieces, p)
		return r.need(p.Object)
	}
	stored, packed := r.packer.pack(text)
	if len(r.object)+len(stored) > pieceSize {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.shared = append(r.shared, len(r.pieces))
	r.pieces = append(r.pieces, Piece{Offset: int64(len(r.object)), Stored: int64(len(stored)), Packed: packed,
		Length: int64(len(text)), Sum: sum})
	r.object = append(r.object, stored...)
	return nil
}

func (r *recorder) flush(ctx context.Context) error {
	if len(r.shared) == 0 {
		return nil
	}
	name, err := r.put(ctx, r.object, nil)
	if err != nil {
		return err
	}
	for _, i := range r.shared {
		r.pieces[i].Object = name
	}
	r.object, r.shared = r.object[:0], nil
	return r.need(name)
}
