// Package database is the one place that knows MySQL, MariaDB, PostgreSQL and
// SQLite: how to connect, what their errors mean and how a person can cure them,
// and where their SQL differs.
//
// It knows no table and no job. Greetings of servers are bounded by package dbconn.
//
// Invariants:
//
//   - Connections have time-outs, and on MySQL and PostgreSQL transactions run at
//     READ COMMITTED.
//   - Errors of Connect say what to do and never hold a password.
//   - Classify names each error in one table; nobody else reads error numbers.
//   - A connection that takes several statements at once (Packets) never gets a
//     statement that somebody else wrote.
package database
