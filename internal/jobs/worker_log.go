package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
)

// Wants says whether a run that ended so is logged.
func (l LogEnds) Wants(o Outcome) bool {
	switch l {
	case LogNone:
		return false
	case LogFailed:
		return o == Retried || o == Failed
	}
	return true
}

// CompletedMessage and FinishedEvent are what the log says of a completed job.
const (
	CompletedMessage = "job completed"
	FinishedEvent    = "job.finished"
)

// logEnds logs the runs that one settlement wrote. It reuses the slice.
func (w *Worker) logEnds(ends []Settlement) {
	completed := ends[:0] // in place
	for _, end := range ends {
		switch {
		case !w.c.LogEnds.Wants(end.Outcome):
		case end.Outcome == Completed && w.c.LogCompleted != nil:
			completed = append(completed, end)
		default:
			LogEnd(w.c.Logger, end, oneLine(end.Error))
		}
	}
	if len(completed) > 0 {
		w.c.LogCompleted(completed)
	}
}

// LogAttrs are the attributes of every log line on the end of a run.
func (s Settlement) LogAttrs() []slog.Attr {
	job := s.Claimed.Job
	return []slog.Attr{slog.String("type", job.Type), slog.Int64("id", job.ID), slog.String("uuid", job.UUID),
		slog.String("queue", job.Queue),
		slog.Int("attempt", job.Attempt), slog.String("outcome", s.Outcome.String()),
		slog.Duration("duration", s.Duration)}
}

// LogEnd logs one run; reason is its error in one line.
func LogEnd(logger *slog.Logger, end Settlement, reason string) {
	level := logLevel(end)
	if !logger.Enabled(context.Background(), level) {
		return
	}
	log := slog.New(logger.Handler().WithAttrs(end.LogAttrs()))
	switch end.Outcome {
	case Completed:
		log.Info(CompletedMessage, "event", FinishedEvent)
	case Cancelled:
		log.Info("job cancelled", "event", "job.finished")
	case Failed:
		log.Error("job failed, see failed_jobs", "event", "job.finished", "error", reason)
	case Retried:
		log.Warn("attempt failed; the job will be retried", "event", "job.retried", "retry_in", end.Delay,
			"error", reason)
	case Released:
		log.Log(context.Background(), level, "job released", "event", "job.released",
			"due_in", end.Delay, "waits_for", end.WaitsFor, "reason", reason)
	}
}

// logLevel is the level of a run's line. A job that waits for a dependency is
// below the usual level: the opened circuit has its own line, and thousands may
// wait.
func logLevel(end Settlement) slog.Level {
	switch {
	case end.Outcome == Failed:
		return slog.LevelError
	case end.Outcome == Retried:
		return slog.LevelWarn
	case end.Outcome == Released && end.WaitsFor != "":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// logUnwritten logs a run whose end could not be written.
func (w *Worker) logUnwritten(end Settlement, err error) {
	log := slog.New(w.c.Logger.Handler().WithAttrs(end.LogAttrs()))
	if errors.Is(err, ErrLeaseLost) {
		log.Warn("outcome of a run not written: its lease is lost, another worker has the job or a person removed it",
			"event", "job.lease_lost")
		return
	}
	log.Error("outcome of a run not written; the job runs again when its lease ends, as long as it has attempts",
		"event", "job.settle_failed", "error", err)
}

// maxLoggedError is how many bytes of an error a log line has.
const maxLoggedError = 2000

// oneLine is an error's text for a log line: all of its causes, without the
// stack that may stand below them.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return PlainText(strings.Join(lines, "; "), maxLoggedError)
}
