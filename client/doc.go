// Package client lets a Go program put jobs into the queue of a CMS and look at
// them. Client writes rows into the CMS's database, also inside the caller's own
// transaction, on MySQL, MariaDB, PostgreSQL and SQLite. API asks the running
// service over HTTP: it enqueues, too, and shows, repeats and deletes jobs.
//
// It is a module by itself that requires nothing but the standard library: the
// caller brings the database's driver. It runs no jobs; that is package worker
// of the service's module.
//
// Invariants:
//
//   - A row is what the service itself would write: the same columns, the same
//     payload byte for byte, the same unique names. Tests of the service's
//     repository hold both together.
//   - A job that was enqueued in a transaction exists when the transaction
//     commits, and otherwise never did.
//   - The database's clock decides when a job is due, unless RunAt says so.
//   - No table of the CMS is altered. Unique keys and ids need the service's own
//     tables (cmsjobs_*): run "cmsjobs migrate" once.
package client
