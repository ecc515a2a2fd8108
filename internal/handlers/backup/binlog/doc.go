// Package binlog archives the binary log of a MySQL or MariaDB server behind backups of
// its database, and brings a restored backup to any later moment by it.
//
// It is no replica, and it decides no retention: callers say which positions backups
// have. Invariants:
//
//   - the archived segments of a file, unpacked and joined, are the server's file byte
//     for byte;
//   - a segment exists whole or not at all, and its name says which bytes it has: the
//     archive itself is the position from which to go on, so a process that is killed
//     loses nothing and repeats nothing;
//   - a file that was purged before it was archived is a gap that is known: no chain of
//     segments leads over it;
//   - a segment is applied only with the signature of an installation that is trusted;
//   - a replay writes into the database that it was given and into no other;
//   - memory does not grow with the log.
package binlog
