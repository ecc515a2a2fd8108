// Package phprows claims, renews, releases and settles the rows of PHP's
// jobs: those of Laravel's jobs table whose payload names a "job" that is no type
// of ours. It implements php.Source.
//
// It is not the queue of cmsjobs's jobs (package queue), which passes over these
// rows, and it starts no PHP (package php).
//
// Invariants:
//
//   - A claim is a compare-and-set of what was read: neither two of our pools nor a
//     "queue:work" beside us get one row. The lease is written where queue:work looks
//     (package tables).
//   - Every change names the lease (id, attempts, reserved_at). Only a job that never
//     started keeps its number of attempts: (id, attempts) is the fence by which PHP writes
//     an outcome when we are gone.
//   - A failed job is in failed_jobs when it is out of jobs: one transaction, which
//     also holds the line of history. The payload is copied by the server, byte for
//     byte.
package phprows
