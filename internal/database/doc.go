// Package database is the one place that knows MySQL, MariaDB, PostgreSQL and
// SQLite: how to connect, what their errors mean and how a person can cure them,
// how their transactions are repeated, and where their SQL differs (Dialect).
//
// It knows no table and no job. Others ask Of(db) for words of SQL and for named
// abilities; they compare no names of drivers or servers (arch_test.go).
//
// Invariants:
//
//   - Connections have time-outs, and on MySQL and PostgreSQL transactions run at
//     READ COMMITTED.
//   - Those of a process who write one SQLite file take turns (one_writer.go).
//   - A server is bounded until it has let us in (greeting.go).
//   - Errors of Connect say what to do and never hold a password.
//   - Classify names each error in one table; nobody else reads error numbers.
//   - A connection that takes several statements at once (Packets) never gets a
//     statement that somebody else wrote.
package database
