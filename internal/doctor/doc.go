// Package doctor looks at an installation and says what is right, what is wrong
// and how to fix it: the database, the tables, the clocks, the folders, the
// workers, the features, and the conditions that the service watches.
//
// It prints nothing and ends no process: package cli does, from its findings.
//
// Invariants:
//
//   - It changes nothing.
//   - Each finding that is not ok says what to do, where anything can be done.
//   - What a condition says is not said a second time by a check.
package doctor
