// Package groupcommit commits what several callers bring at the same time in one
// transaction, since a commit is what costs.
//
// It is no queue and no timer: it knows no database, starts no goroutine, and
// keeps nothing between calls.
//
// Invariants:
//
//   - A single caller waits for nobody.
//   - The caller who waits longest works for those behind it, once: nobody works
//     for others for ever.
//   - One item's fault is not the others': after an error each is committed alone.
//   - A caller who gives up while it waits has written nothing.
package groupcommit
