// Package restore brings back what backups hold: the database or single tables,
// files or those that fit a pattern, in place or somewhere else.
//
// It makes no backups itself; the one before a restore is asked for. Invariants:
// nothing is restored without the token of a plan, from an archive that this
// installation never made without permission, or before the whole archive was copied
// and verified; files that a web server could execute are left out unless they are
// allowed; a restore that stopped half way is known as unfinished.
package restore
