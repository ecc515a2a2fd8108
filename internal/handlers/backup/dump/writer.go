package dump

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

const (
	defaultPiece = 2 << 20
	// burst is how much a throttled dump may read at once.
	burst = 256 << 10
)

// writer gathers SQL into pieces and hands them to the sink in a goroutine of
// its own, so that the next piece is read while one is compressed.
type writer struct {
	ctx      context.Context
	sink     Sink
	size     int
	limiter  *rate.Limiter
	progress func(string, int64, int64)

	part  Part
	table string
	buf   []byte
	rows  int64
	bytes int64

	full   chan piece
	free   chan []byte
	done   chan struct{}
	failed error // the sink's error; read after done is closed
}

type piece struct {
	part  Part
	table string
	sql   []byte
}

func newWriter(ctx context.Context, o Options, sink Sink) *writer {
	w := &writer{ctx: ctx, sink: sink, size: o.PieceSize, progress: o.Progress,
		full: make(chan piece), free: make(chan []byte, 2), done: make(chan struct{})}
	if w.size <= 0 {
		w.size = defaultPiece
	}
	if o.Throttle > 0 {
		w.limiter = rate.NewLimiter(rate.Limit(o.Throttle), burst)
	}
	w.buf = make([]byte, 0, w.size+w.size/4)
	w.free <- make([]byte, 0, w.size+w.size/4)
	go w.pump()
	return w
}

func (w *writer) pump() {
	defer close(w.done)
	for p := range w.full {
		if w.failed = w.sink(p.part, p.table, p.sql); w.failed != nil {
			return
		}
		w.free <- p.sql[:0]
	}
}

// start begins what belongs to a table, or to none.
func (w *writer) start(part Part, table string) {
	w.flush()
	w.part, w.table = part, table
}

// finish ends what belongs to a table.
func (w *writer) finish() { w.start(w.part, "") }

func (w *writer) write(sql []byte) {
	w.bytes += int64(len(sql))
	for len(w.buf)+len(sql) > cap(w.buf) { // a row may be longer than a piece
		n := cap(w.buf) - len(w.buf)
		w.buf = append(w.buf, sql[:n]...)
		sql = sql[n:]
		w.flush()
	}
	w.buf = append(w.buf, sql...)
}

func (w *writer) string(sql string) {
	w.write([]byte(sql))
	if len(w.buf) >= w.size { // only here: between two rows
		w.flush()
	}
}

func (w *writer) textf(format string, args ...any) { w.string(fmt.Sprintf(format, args...)) }

// flush gives the piece to the sink's goroutine and takes an empty one.
func (w *writer) flush() {
	if len(w.buf) == 0 || w.err() != nil {
		w.buf = w.buf[:0]
		return
	}
	w.wait(len(w.buf))
	select {
	case w.full <- piece{w.part, w.table, w.buf}:
	case <-w.done:
		w.buf = w.buf[:0]
		return
	}
	select {
	case w.buf = <-w.free:
	case <-w.done:
		w.buf = make([]byte, 0, w.size+w.size/4)
	}
	if w.progress != nil {
		w.progress(w.table, w.rows, w.bytes)
	}
}

func (w *writer) wait(n int) {
	for w.limiter != nil && n > 0 {
		if w.limiter.WaitN(w.ctx, min(n, burst)) != nil {
			return // the context ended, which the next query finds too
		}
		n -= burst
	}
}

// err is the sink's error, if it failed already, or the context's.
func (w *writer) err() error {
	select {
	case <-w.done:
		return w.failed
	default:
	}
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return nil
}

// close hands over the last piece and waits for the sink.
func (w *writer) close() error {
	w.flush()
	close(w.full)
	<-w.done
	return w.failed
}
