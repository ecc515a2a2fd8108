// Package tables knows the tables that hold jobs: jobs and failed_jobs of a CMS
// (Laravel's own layout, or the extended one) on MySQL, MariaDB, PostgreSQL or
// SQLite, and the tables named cmsjobs_* beside them. It finds out what they
// look like, writes the SQL that differs between them, runs statements and
// transactions, and decides which rows are ours.
//
// It is neither the queue nor the history: those packages are built on it, and
// other packages only create tables and name options with it.
//
// Invariants:
//
//   - No table of the CMS is ever altered; AddIndex, which an administrator
//     asks for, is the one exception.
//   - The database's clock decides what is due and whose lease ran out.
//   - A lease is written as "now + length − RetryAfter" and has run out when
//     it is older than RetryAfter. So every lease carries its own length, and a
//     PHP worker, which tests reserved_at <= now − retry_after, keeps off
//     exactly as long (RetryAfter must equal the CMS's retry_after).
//   - Nothing is taken for lost while the database was in trouble or its clock
//     jumped (rescue.go).
package tables
