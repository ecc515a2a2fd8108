// Package phrasetest finds the texts that a package says in its source, and holds them
// against their translations. It is for tests, and reads no package but what it is given.
//
// Invariant: a text that is not found by it is not judged; callers check how many were.
package phrasetest
