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
	putsAtOnce = 2
)

// assembler puts the contents of small files together.
type assembler struct {
	*run
	group    *errgroup.Group
	segments chan<- *segment
	buffers  chan []byte // memory of objects
	current  *segment
}

// assemble puts the contents of small files together and stores them.
func (b *run) assemble(ctx context.Context, g *errgroup.Group, ordered <-chan *item, segments chan<- *segment) error {
	a := &assembler{run: b, group: g, segments: segments, buffers: make(chan []byte, putsAtOnce+1), current: &segment{}}
	for range cap(a.buffers) {
		a.buffers <- nil // made when it is needed
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
		if err := a.add(ctx, it); err != nil {
			return err
		}
	}
	return a.finish(ctx)
}

// add adds a file, and its content if it is small.
func (a *assembler) add(ctx context.Context, it *item) error {
	if len(a.current.items) >= segmentFiles || len(a.current.object)+it.length > pieceSize {
		if err := a.finish(ctx); err != nil {
			return err
		}
	}
	s := a.current
	s.items = append(s.items, it)
	if it.small == nil {
		return nil
	}
	if s.object == nil {
		select {
		case s.object = <-a.buffers:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.object == nil {
			s.object = make([]byte, 0, pieceSize)
		}
	}
	it.entry.Pieces[0].Offset = int64(len(s.object))
	s.object = append(s.object, it.small[:it.length]...)
	s.shared = append(s.shared, it)
	a.small.Put(it.small)
	it.small, it.length = nil, 0
	return nil
}

// finish stores the object of the current segment and begins the next.
func (a *assembler) finish(ctx context.Context) error {
	s := a.current
	a.current = &segment{}
	s.done = already
	if len(s.shared) > 0 {
		done := make(chan struct{})
		s.done = done
		a.group.Go(func() error {
			defer func() { a.buffers <- s.object[:0] }()
			if err := a.share(ctx, s); err != nil {
				return err
			}
			close(done)
			return nil
		})
	}
	if !send(ctx, a.segments, s) {
		return context.Cause(ctx)
	}
	return nil
}

// share stores the object of a segment.
func (b *run) share(ctx context.Context, s *segment) error {
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
