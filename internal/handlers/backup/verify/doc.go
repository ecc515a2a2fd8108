// Package verify reads backups back and says whether they hold what was
// packed: their bytes, their entries, or a database restored from them.
//
// It changes no backup and decides on none: what it finds is written down by the
// catalog. Invariants: what keeps it from reading (a destination that does not answer, a
// budget that ends) says nothing about the backup; a temporary database is removed
// whatever happens.
package verify
