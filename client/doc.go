// Package client lets another Go program use the queue of a CMS: enqueue jobs,
// also inside its own transaction, look at them, retry and delete them, and
// run its own kinds of jobs in a small worker.
//
// It speaks to the database, not to HTTP, and works on the tables of Laravel
// as on the extended ones, on MySQL, MariaDB, PostgreSQL and SQLite. The
// service's own tables (cmsjobs_*) must be there: run "cmsjobs migrate" once.
//
// A job that was enqueued in a transaction exists when the transaction
// commits, and otherwise never did. Handlers may run more than once for one
// job after a crash: make them repeatable.
package client
