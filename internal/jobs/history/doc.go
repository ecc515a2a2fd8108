// Package history answers what people ask of the jobs, waiting, running, failed
// and ended alike: lists, single jobs, causes of failures, statistics,
// throughput, workers. It carries out what people decide about them: retry, run
// now, cancel, delete, pause, stop. It also deletes what is old.
//
// It is not the queue (internal/jobs/queue), which enqueues, claims and settles
// and which this package neither uses nor needs. It shares the tables with it.
//
// Invariants:
//
//   - Lists of the jobs are merged from jobs, failed_jobs and cmsjobs_runs, newest
//     first, and go on from a keyset cursor. No page reads a whole table.
//   - What is asked of rows of PHP is answered; only Delete and Retry of failed
//     jobs, which Laravel's own queue:forget and queue:retry do too, change them.
//   - A change names the rows that it changes and the state in which it saw them.
package history
