// Package jobstest gives tests real parts: MariaDB, MySQL, PostgreSQL
// and Redis servers that it starts itself in a private folder on a free port, and an
// embedded SQLite file. Each server is started once a test process and ends
// with it, however it ends.
//
// It is not a mock of anything. Where a server is not installed the test is
// skipped, unless CI=true: then it fails.
package jobstest
