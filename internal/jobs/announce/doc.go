// Package announce keeps the types that the workers of other programs run, so
// that every process can enqueue and show their jobs. A worker announces its
// types when it starts and while it lives; a type that nobody announced for
// [Kept] is forgotten. Jobs are never touched: those of a type without workers wait.
//
// It runs nothing and knows no worker: which of them live is in cmsjobs_workers.
//
// Invariants:
//
//   - A type of this program cannot be announced (jobs.Registry.SetElsewhere).
//   - A schema is judged without asking any other place for parts of it.
package announce
