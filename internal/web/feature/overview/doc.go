// Package overview is the first page: is anything working, what is wrong, and how
// has it been?
//
// It measures nothing itself: conditions, checks, the history and the other
// features do.
//
// Invariant: what is expensive to count loads in the background; the page never
// waits for it.
package overview
