package repository

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// segment is a row of files whose small ones share an object.
type segment struct {
	items  []*item
	shared []*item // those of items whose content is in object
	object []byte
	done   chan struct{} // closed when the object is stored
}

const (
	// segmentFiles bounds how many files wait for an object.
	segmentFiles = 16 << 10
	// putsAtOnce is how many shared objects are stored at the same time.
	putsAtOnce = 3
)

// assemble puts the contents of small files together and stores them.
func (b *run) assemble(ctx context.Context, g *errgroup.Group, ordered <-chan *item, segments chan<- *segment) error {
	buffers := make(chan []byte, putsAtOnce+1)
	for range cap(buffers) {
		buffers <- nil
	}
	current, size := &segment{}, 0
	finish := func() bool {
		current.done = already
		if len(current.shared) > 0 {
			done := make(chan struct{})
			s := current
			s.done = done
			var buffer []byte
			select {
			case buffer = <-buffers:
			case <-ctx.Done():
				return false
			}
			g.Go(func() error {
				defer func() { buffers <- s.object; s.object = nil }()
				s.object = buffer[:0]
				if err := b.share(ctx, s); err != nil {
					return err
				}
				close(done)
				return nil
			})
		}
		ok := send(ctx, segments, current)
		current, size = &segment{}, 0
		return ok
	}
	for it := range ordered {
		select {
		case <-it.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if it.gone {
			continue
		}
		if len(current.items) >= segmentFiles || size+it.length() > pieceSize {
			if !finish() {
				return context.Cause(ctx)
			}
		}
		if it.small != nil {
			current.shared = append(current.shared, it)
			size += it.length()
		}
		current.items = append(current.items, it)
	}
	if !finish() {
		return context.Cause(ctx)
	}
	return nil
}

// length is what the file needs of a shared object.
func (it *item) length() int {
	if it.small == nil {
		return 0
	}
	return it.small.Len()
}

// share stores the object of a segment.
func (b *run) share(ctx context.Context, s *segment) error {
	for _, it := range s.shared {
		it.entry.Pieces[0].Offset = int64(len(s.object))
		s.object = append(s.object, it.small.Bytes()...)
		b.small.Put(it.small)
		it.small = nil
	}
	name, err := b.put(ctx, s.object, nil)
	if err != nil {
		return err
	}
	known := b.known()
	for _, it := range s.shared {
		it.entry.Pieces[0].Object = name
		known.add(it.entry.Pieces[0])
	}
	return nil
}
