// Package backups is the page and the API of backup archives.
//
// It makes and restores none itself: Port is what it needs of the handler that does.
//
// Invariant: a download, a deletion and a restore are for administrators; a restore says what it
// changes before it begins, and a person types the word that the plan names.
package backups
