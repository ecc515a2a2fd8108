package app

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/lmittmann/tint"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/joblog"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/memory"
	"github.com/cmsjobs/cmsjobs/internal/processors"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Logger writes to standard error: for people where one watches, as JSON for
// collectors elsewhere.
func (p *Process) Logger(c config.Log) *slog.Logger {
	p.lines.to(p.Err)
	if p.logsJSON(c) {
		return slog.New(jsonHandler(logLevel(c))(&p.lines))
	}
	plain := !p.StderrIsTTY || config.NoColor()
	return slog.New(redact.Handler(tint.NewTextHandler(&p.lines,
		&tint.Options{Level: logLevel(c), TimeFormat: time.TimeOnly, NoColor: plain, ReplaceAttr: attribute})))
}

func (p *Process) logsJSON(c config.Log) bool {
	return c.Format == "json" || c.Format == "auto" && !p.StderrIsTTY
}

func logLevel(c config.Log) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo // the configuration was checked; this is no way out
	}
	return level
}

func jsonHandler(level slog.Level) func(io.Writer) slog.Handler {
	return func(w io.Writer) slog.Handler {
		return redact.Handler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: attribute}))
	}
}

// LogOf is the log of one site: each line names it, where there are several.
func (p *Process) LogOf(l *config.Loaded) *slog.Logger {
	log := p.Logger(l.Log)
	if l.Site != "" {
		log = log.With("site", l.Site)
	}
	return log
}

// completedLog writes the lines of completed jobs; nil where the usual log does.
func (p *Process) completedLog(l *config.Loaded) func([]jobs.Settlement) {
	c := l.Log
	switch {
	case !p.logsJSON(c):
		return nil
	case logLevel(c) > slog.LevelInfo:
		return func([]jobs.Settlement) {}
	}
	return joblog.New(&p.lines, jsonHandler(slog.LevelInfo), p.Now, l.Site).Completed
}

// lineWriter writes what several loggers bring, one call after the other.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lineWriter) to(out io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = out
}

// Write implements io.Writer.
func (w *lineWriter) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(lines)
}

// attribute writes durations in milliseconds, with the unit in the key, and
// keeps every value on one line.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.Float64(a.Key+"_ms", joblog.Milliseconds(a.Value.Duration()))
	case slog.KindString:
		return slog.String(a.Key, display.OneLine(a.Value.String()))
	case slog.KindAny:
		if err, is := a.Value.Any().(error); is && err != nil {
			return slog.String(a.Key, display.OneLine(err.Error()))
		}
	}
	return a
}

// Process is the running program as its services see it.
type Process struct {
	Self    string    // the program's own file, for its child processes; "" is none
	Version string    // as the build sets it
	Err     io.Writer // where the log goes
	Now     func() time.Time
	// StderrIsTTY says that err is a terminal: progress may move, lines have colours.
	StderrIsTTY bool
	// Collector is Go's; nil: it is not this program's to set.
	Collector *memory.Collector
	// Processors are what Go uses; nil: they are not this program's to set.
	Processors *processors.Share
	lines      lineWriter // the log's way to err
}

// UsageError is the caller's mistake.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

func Usagef(format string, args ...any) error { return UsageError{Err: fmt.Errorf(format, args...)} }

// DatabaseError says that the database cannot be reached or used.
type DatabaseError struct{ Err error }

func (e DatabaseError) Error() string { return e.Err.Error() }

// Unwrap returns what the database or the driver said.
func (e DatabaseError) Unwrap() error { return e.Err }
