// Package queue enqueues, claims, renews and settles jobs in the tables of a
// CMS. One concrete Store is the jobs.Source of workers, the jobs.Enqueuer of
// all parts, the jobs.WorkerRegistry and the schedule's Ticker.
//
// It is not a second queue: the rows stay where PHP and plain INSERTs put and
// see them. What those rows cannot hold (runs, unique keys, permits, workers)
// lies in tables named cmsjobs_*. Lists, statistics and what people change are
// the history's (internal/jobs/history); what both must know of the tables is in
// internal/jobs/tables.
//
// Where things are: enqueue*.go insert. claim.go goes through queues and scan
// cursors; scan_cursor.go, rescan.go and pending.go say where it looks;
// block.go reads a block behind the cursor, block_take.go moves the cursor and takes its
// first rows; claim_candidates.go chooses rows, and what one run stands for; permits.go
// leaves rows out; claim_rows.go takes them. renew.go keeps leases.
// settle.go writes ends, by one statement (settle_plain.go) or a transaction
// (settle_changes.go). in_doubt.go and settle_in_doubt.go remember what got no
// answer. store.go holds all state.
//
// Invariants:
//
//   - Candidates are read without a lock and taken by primary key, at READ
//     COMMITTED. Rows of other types are never locked and never written.
//   - Every write that ends or extends a run names its lease. A write whose
//     lease is gone changes nothing.
package queue
