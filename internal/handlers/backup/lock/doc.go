// Package lock holds named locks in the table cmsjobs_backup_locks. A lock ends
// with its holder: it is renewed every few seconds and free half a minute after
// the last renewal. The database's clock decides, never a host's.
//
// It is no general mutex: a holder that is cut off from the database keeps
// working until a renewal tells it that the lock is another's (Lost).
package lock
