// Package storage keeps files on a local disk or in an S3 bucket behind one
// small interface.
//
// It is not a file system: there are keys, no folders to make and no
// permissions. Invariants: a key is a relative, slash-separated path that
// stays under the store's root (".." and absolute keys are refused, symlinks
// are not followed); Put is atomic, a reader sees the old object or the new
// one, never a half; a failed Put leaves nothing behind.
package storage
