// Package browse looks into backups: which tables, folders and files one holds, a single
// file of it, and how two of them differ.
//
// It changes nothing and restores nothing. Invariants: an archive is read from its
// beginning to its end and its hash is checked, so an answer is of the archive that was
// made; memory does not grow with the size of files.
package browse
