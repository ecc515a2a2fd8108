// Package listing counts what a list holds, where counting is cheap.
//
// A list of people's shows its total beside its first part. Counting a large
// table by a filter that no index serves reads all of it, so that large tables
// have no total: −1. Small tables always have one.
//
// It is not a query builder: the caller gives its own condition.
package listing
