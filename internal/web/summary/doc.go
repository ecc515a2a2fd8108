// Package summary puts what a job did, or would do, into the language of a page's
// reader: sentences and tables.
//
// It asks nobody and changes nothing; what it is given has no secrets any more.
//
// Invariants:
//
//   - A result whose type has no words is a table of its fields; none is left out.
//   - The length of a value, and the number of rows, are bounded.
package summary
