// Package queue keeps jobs in SQL: in the tables jobs and failed_jobs of a
// CMS (Laravel's own layout, or the extended one) on MySQL, MariaDB,
// PostgreSQL or SQLite. One concrete Store is the jobs.Source of workers, the
// jobs.Enqueuer of everybody and the jobs.Roster.
//
// It is not a second queue: the rows stay where PHP and plain INSERTs put and
// see them, and no table of the CMS is ever altered. What those rows cannot
// hold (history, unique keys, permits, workers, pauses) lies in tables named
// cmsjobs_*.
//
// Invariants:
//
//   - The database's clock decides what is due and whose lease ran out.
//   - A lease is written as "now + length − RetryAfter" and has run out when
//     it is older than RetryAfter. So every lease carries its own length, and a
//     PHP worker, which tests reserved_at <= now − retry_after, keeps off
//     exactly as long (RetryAfter must equal the CMS's retry_after).
//   - Candidates are read without a lock and taken by primary key, at READ
//     COMMITTED. Rows of other types are never locked and never written.
//   - Every write that ends or extends a run names its lease. A write whose
//     lease is gone changes nothing.
package queue
