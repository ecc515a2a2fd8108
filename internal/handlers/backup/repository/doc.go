// Package repository keeps backups of files that store each content once. A
// repository is a folder or a bucket with objects, one small record per backup,
// and a shell script that restores without this program. docs/repository-format.md
// describes every byte of it.
//
// It does not know the CMS, its database or its settings: callers hand it sources
// of files and get records. It is no synchronisation either: what a backup names
// never changes.
//
// Invariants:
//   - a backup exists once its record does, and its record is written last;
//   - the name of every object and record holds the SHA-256 of its bytes, so that
//     any changed bit is found without a key;
//   - no name is ever used twice, so that deleting an old object never removes a
//     new one;
//   - what a record names is deleted only after that record was deleted on purpose,
//     and never while a backup, a restore or a verification runs;
//   - a file that is as the last backup saw it (size, times, inode) is not read;
//   - memory does not grow with the size of files, only slowly with their number.
package repository
