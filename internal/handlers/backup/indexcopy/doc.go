// Package indexcopy is the file in which an installation keeps, at a destination of its
// backups, what its index knows of the manifest files there. A server without an
// index (a new one, or one that lost its database) then reads one object instead of
// one for each backup.
//
// It is a cache: a row counts only for the object that it describes (key, size,
// modification, tag), and everything in it can be read again from the manifest files.
// Invariants: the file is signed as a whole (Ed25519), and read only when the reader
// trusts the key; what is read of it is bounded.
package indexcopy
