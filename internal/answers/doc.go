// Package answers keeps answers that take long to make: counts of the history,
// walks through folders, lists of buckets.
//
// It is not a cache of the CMS (handlers/cache) and shares nothing between
// processes.
//
// Invariants: one question is asked once at a time, however many callers wait;
// an answer is made under its own deadline, not the one of the caller who came
// first; a caller never waits longer than its context allows; nothing is asked when Close has returned.
package answers
