// Package restore brings back what backups hold: the database or single tables,
// files or those that fit a pattern, in place or somewhere else.
//
// It makes no backups itself; the one before a restore is asked for. Invariants:
// nothing is restored without the token of a plan, from an archive that this
// installation never made without permission, or before the whole archive was copied
// and verified; files that a web server could execute are left out unless they are
// allowed; a restore of the site loads everything beside it, writes down in a journal
// (cmsjobs_backup_restores) how far it came, and exchanges it at once: killed at any
// moment it leaves the site wholly as it was or as the backup, and Settle brings it to
// its end. Only views, programs, foreign keys and files follow the exchange.
package restore
