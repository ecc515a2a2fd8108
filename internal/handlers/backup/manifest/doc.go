// Package manifest is the form of a backup: the names of an archive's entries,
// its first (Header) and its last one (Manifest), the manifest file beside it (File), the
// result of its newest verification, and the signature by which an installation
// knows its own backups.
//
// It reads and writes no archive and no database. Invariants: the
// manifest file is written after the archive, and says nothing about any other
// archive; its signature covers all that it says but its status, verification and
// warnings.
package manifest
