// Package botble keeps backups as the CMS's own backup plugin does, so that its
// admin lists, downloads and restores them.
//
// It is a place for backups (storage.Store), not a maker of them: it takes an
// archive apart while it is written. It cannot put an archive together again. Invariants:
// what others wrote into the CMS's list of backups stays; only folders that bear
// our mark are deleted.
package botble
