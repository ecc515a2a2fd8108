// Package retention decides which backups stay. It is a pure function of the
// list of backups, the rules and the time. It reads nothing and deletes nothing.
//
// Invariants, which a test checks with random histories:
//
//   - the newest verified backup of each part (database, files, both) stays;
//   - nothing that is younger than the minimum age goes;
//   - only what is verified, or not yet due for a verification, takes a place: backups
//     whose verification failed, of other parts, or of other installations push
//     nothing out;
//   - any number of backups of one day take one place.
package retention
