package media

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// guard keeps the pictures that are decoded at the same time within the
// process's means: an out-of-memory ends a Go process, it cannot be recovered.
type guard struct {
	places *semaphore.Weighted
	memory *semaphore.Weighted
	budget int64
}

func newGuard(atOnce int, memory int64) *guard {
	return &guard{places: semaphore.NewWeighted(int64(atOnce)), memory: semaphore.NewWeighted(memory), budget: memory}
}

// place waits for the right to read and decode a picture.
func (g *guard) place(ctx context.Context) (release func(), err error) {
	if err := g.places.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { g.places.Release(1) }, nil
}

// take waits for n bytes; a picture that needs more than there is takes all.
func (g *guard) take(ctx context.Context, n int64) (release func(), err error) {
	n = min(max(n, 1), g.budget)
	if err := g.memory.Acquire(ctx, n); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { g.memory.Release(n) }, nil
}

// cost estimates what decoding takes in bytes.
func cost(h picture.Header, fileBytes int64) int64 {
	const small = 12 << 20 // renditions on their way
	switch {
	case h.Frames > 1:
		return fileBytes + h.Pixels()*int64(h.Frames) + 8*h.Pixels() + small
	case h.Format == picture.JPEG && h.Streamed:
		// At full size, where the sizes wanted are nearly as large, it is more.
		return fileBytes + h.Pixels()*3/2 + 8*min(h.Pixels(), 4e6) + small
	case h.Streamed:
		return fileBytes + h.Pixels() + small
	case h.Format == picture.AVIF: // planes, and colours of 16 bits in and out of the decoder's memory
		return 2*fileBytes + 32*h.Pixels() + 4*small
	}
	return fileBytes + 8*h.Pixels() + small
}
