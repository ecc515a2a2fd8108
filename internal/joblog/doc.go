// Package joblog writes the log lines of completed jobs, as JSON and many at a
// time. A busy worker completes tens of thousands of jobs a second; the usual
// log costs a multiple of what such a job does.
//
// It is no second logger: everything else is logged by log/slog, and so are
// these lines where the log is no JSON.
//
// Invariants:
//
//   - A line is byte for byte what slog.NewJSONHandler writes of the same record
//     behind redact.Handler, durations as milliseconds.
//   - The lines of a batch are one call of Write, so no other line comes between
//     the parts of one. Nothing is kept back: the batch is written when
//     Completed returns.
package joblog
