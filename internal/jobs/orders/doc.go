// Package orders keeps what internal jobs are to do (table
// cmsjobs_internal_orders): bulk changes, restores, webhook deliveries, probes.
//
// It is no queue and no history: a job lies in the queue's table and names its
// order; how it went is in the history of runs.
//
// Invariants:
//
//   - An order's ID is random (128 bits) and cannot be guessed.
//   - An order is written before the job that names it, and is never changed
//     but to be marked as used, once.
//   - An order whose job was never enqueued does nothing; Prune removes it.
package orders
