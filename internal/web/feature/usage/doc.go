// Package usage is the page and the API of what takes space, and of cleaning it.
//
// It measures and cleans nothing itself: Port is what it needs; jobs do the cleaning.
//
// Invariant: a page never waits for a walk through folders: it asks again.
package usage
