// Package jobs says what a job is, what a handler promises, and runs the loop
// that joins the two. It knows no SQL, no HTTP and no CMS: it imports the
// standard library only.
//
// The words are used in one meaning each. A type names work
// ("sitemap.generate"). A job is one row of the queue. An attempt is one start
// of a job; the first is 1. A worker claims a job and holds a lease on it,
// which it renews while the job runs. A run ends in exactly one of complete,
// retry, release (released, not counted), fail (moved to failed_jobs) or
// cancel.
//
// Invariants:
//
//   - A claim is committed before its handler starts, and every later write
//     names the claim's lease. A write whose lease is gone changes nothing
//     (ErrLeaseLost).
//   - An attempt is charged when it starts, so a job that kills its process
//     ends too. Shutdown and trouble of the database release the attempt.
//   - A handler receives copies. Nothing that the worker writes later is
//     visible to it.
//   - A worker claims only types that its Registry knows. Foreign rows, above
//     all PHP's own, stay as they are.
//   - Delays are counted by the database's clock, lengths of time by the
//     monotonic clock. The wall clock of a worker's host decides nothing.
package jobs
