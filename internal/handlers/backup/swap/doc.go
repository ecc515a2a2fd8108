// Package swap loads the tables of a dump beside the live ones and exchanges all
// of them at once: MySQL and MariaDB by one RENAME TABLE, SQLite by one transaction.
//
// It knows no archives, files or journals: its caller writes down a Set before the
// first change and what became of it. Invariants: until the exchange nothing that is
// live is changed; after it, Finish may be repeated until it succeeds, and Drop may be
// repeated before it; every table that it makes has a name of Prefix.
package swap
