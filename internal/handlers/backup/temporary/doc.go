// Package temporary makes the databases and folders that live only for a
// verification or a restore, and removes those that a killed process left.
//
// It knows nothing of backups. Invariants: a lock names each one before it is
// made and until it is removed, so that what a dead holder left is found; only
// names of the form that it makes are ever dropped.
package temporary
