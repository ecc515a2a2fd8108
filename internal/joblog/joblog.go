package joblog

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Writer writes lines of completed jobs.
type Writer struct {
	out  io.Writer
	now  func() time.Time
	slow slog.Handler // writes to lines
	site string       // the attribute that names it, as JSON; "" is none

	mu    sync.Mutex
	lines bytes.Buffer
}

// New returns a Writer to out, which must take lines from several goroutines.
// handler makes the handler of the usual log; it writes the few lines whose
// texts need a look for secrets or an escape. site is a plain word that each line names;
// "" where there is one site.
func New(out io.Writer, handler func(io.Writer) slog.Handler, now func() time.Time, site string) *Writer {
	w := &Writer{out: out, now: now}
	w.slow = handler(&w.lines)
	if site != "" {
		w.slow = w.slow.WithAttrs([]slog.Attr{slog.String("site", site)})
		w.site = `"site":` + strconv.Quote(site) + `,`
	}
	return w
}

// maxKept is how many bytes of a batch's buffer are kept for the next one.
const maxKept = 1 << 20

// Completed writes a line for each run. A failed write loses them, as slog's
// does: a log that is gone must not stop the jobs.
func (w *Writer) Completed(runs []jobs.Settlement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now().Round(0)
	stamp := now.AppendFormat(nil, time.RFC3339Nano)
	for i := range runs {
		w.line(now, stamp, &runs[i])
	}
	_, _ = w.out.Write(w.lines.Bytes())
	if w.lines.Reset(); w.lines.Cap() > maxKept {
		w.lines = bytes.Buffer{} // in place: the handler holds its address
	}
}

func (w *Writer) line(now time.Time, stamp []byte, run *jobs.Settlement) {
	job := &run.Claimed.Job
	if !redact.PlainWord(job.Type) || !redact.PlainWord(job.Queue) || !redact.PlainWord(job.UUID) {
		w.slowly(now, run)
		return
	}
	to := w.lines.AvailableBuffer()
	to = append(append(to, `{"time":"`...), stamp...)
	to = append(to, `","level":"INFO","msg":"`+jobs.CompletedMessage+`",`...)
	to = append(append(to, w.site...), `"type":"`...)
	to = append(append(to, job.Type...), `","id":`...)
	to = append(strconv.AppendInt(to, job.ID, 10), `,"uuid":"`...)
	to = append(append(to, job.UUID...), `","queue":"`...)
	to = append(append(to, job.Queue...), `","attempt":`...)
	to = append(strconv.AppendInt(to, int64(job.Attempt), 10), `,"outcome":"`...)
	to = append(append(to, run.Outcome.String()...), `","duration_ms":`...)
	to = strconv.AppendFloat(to, Milliseconds(run.Duration), 'f', -1, 64)
	w.lines.Write(append(to, `,"event":"`+jobs.FinishedEvent+`"}`+"\n"...))
}

// slowly writes a line by the usual log.
func (w *Writer) slowly(now time.Time, run *jobs.Settlement) {
	record := slog.NewRecord(now, slog.LevelInfo, jobs.CompletedMessage, 0)
	record.AddAttrs(run.LogAttrs()...)
	record.AddAttrs(slog.String("event", jobs.FinishedEvent))
	_ = w.slow.Handle(context.Background(), record) // to memory
}

// Milliseconds is how the log tells a length of time: rounded to microseconds.
func Milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}
