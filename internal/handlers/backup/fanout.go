package backup

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// fanout streams one archive to several destinations at once. One that fails
// drops out; the others go on.
type fanout struct {
	destinations []*upload
	wg           sync.WaitGroup
	stall        time.Duration
}

type upload struct {
	name string
	pipe *io.PipeWriter
	err  error // of Put; read after end
	dead bool  // nobody reads the pipe any more
	// cancel ends a Put that hangs.
	cancel context.CancelCauseFunc
}

// errAbandoned ends the uploads of an archive that is not completed.
var errAbandoned = errors.New("the backup was not completed")

func newFanout(ctx context.Context, stores map[string]storage.Store, names []string, key string, o storage.PutOptions,
	stall time.Duration) *fanout {
	f := &fanout{stall: stall}
	for _, name := range names {
		r, w := io.Pipe()
		ctx, cancel := context.WithCancelCause(ctx)
		l := &upload{name: name, pipe: w, cancel: cancel}
		f.destinations = append(f.destinations, l)
		f.wg.Go(func() {
			l.err = stores[name].Put(ctx, key, r, o)
			if l.err == nil {
				// A store that stops before the end has not kept the archive.
				if n, _ := io.Copy(io.Discard, r); n > 0 {
					l.err = errors.New("the destination did not take the whole archive")
				}
			}
			r.CloseWithError(errAbandoned)
			cancel(nil)
		})
	}
	return f
}

// Write fails only when no destination is left.
func (f *fanout) Write(p []byte) (int, error) {
	alive := 0
	for _, l := range f.destinations {
		if l.dead {
			continue
		}
		hangs := time.AfterFunc(f.stall, func() {
			l.cancel(ErrStalled)
			l.pipe.CloseWithError(ErrStalled)
		})
		_, err := l.pipe.Write(p)
		hangs.Stop()
		if err != nil {
			l.dead = true
			continue
		}
		alive++
	}
	if alive == 0 {
		return 0, errNoDestination
	}
	return len(p), nil
}

var errNoDestination = errors.New("no backup destination is available")

// end completes the uploads, or abandons them with the given error, and waits.
func (f *fanout) end(err error) {
	for _, l := range f.destinations {
		l.pipe.CloseWithError(err) // nil is the archive's end
	}
	f.wg.Wait()
}

// ErrStalled is the cause of a backup's end when nothing moved for too long.
var ErrStalled = errors.New("nothing moved for longer than the stall timeout")
