// Package conditions holds the one list of what can be wrong with an
// installation: name, severity, what is measured, threshold and fix. The
// commands doctor and health, /readyz, the overview page, the metrics, the
// notifications, the alert rules for Prometheus and the table in the documents
// all follow this list.
//
// It is no monitoring system: it keeps no history and draws nothing. It does
// not look at single jobs (package explain does), and it repairs nothing.
//
// Invariants:
//
//   - A process evaluates all conditions once in an interval. Reads are bounded
//     and go by an index; expensive ones are made every fifth time.
//   - Each change of a condition is a compare-and-set in cmsjobs_conditions: of
//     all processes one notifies, at most once a change.
//   - A shared condition is measured from the database, so each process sees the
//     same and may end it. A local one (this process cannot write, this host's
//     disk is full) is ended by the process that saw it, or by another once it
//     was not seen for three intervals.
//   - A measurement that fails changes nothing: the condition stays as it is.
//   - The addresses that are pinged are secrets: they are in no error and no log.
package conditions
