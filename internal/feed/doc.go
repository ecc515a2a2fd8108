// Package feed notices rows that other programs insert into the jobs table, and
// wakes the workers of this host within milliseconds, instead of at their next
// poll.
//
// One process of a host does it for all (Watcher, by a lock on a file). It looks
// for rows above the newest that it has seen: often while jobs come, seldom while
// none do. A Source that the database or the CMS offers (the binary log, NOTIFY,
// changes of SQLite's files, a datagram of PHP) makes it look at once; while such a
// source is known to work and has missed nothing, looks are rare.
//
// A source that sees the tables of the CMS's content too tells of their changes
// (Options.Content); what changed, it does not know.
//
// It is no queue, and nothing is lost without it: what it says is "look now", the
// claim decides, and the worker's own poll finds what it misses (rows that were
// committed out of order, above all). Invariants: it never ends for trouble of the
// database or of a source, never stops looking, keeps no position across a
// restart, and a flood of hints makes no more than a bounded number of looks.
package feed
