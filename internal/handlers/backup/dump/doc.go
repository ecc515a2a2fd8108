// Package dump writes a MySQL or MariaDB database as SQL that the plain
// client restores to the bit, and reads such SQL back.
//
// It is not a backup: it knows no files, archives or destinations; it hands
// pieces of SQL to a Sink. Invariants: everything is read through one
// connection in one consistent snapshot, without table locks, and the metadata
// lock of a table is released after it; Main pieces, joined, are plain
// statements ended by ";" without DELIMITER, strings with backslash escapes;
// Extra pieces, joined, hold what needs DELIMITER and are run after them;
// memory is bounded by a few pieces and the largest row.
package dump
