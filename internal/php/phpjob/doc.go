// Package phpjob reads payloads of Laravel's jobs for people: class, limits,
// properties, tags, chain, batch.
//
// It runs no PHP and never unserialises: ReadValue is a parser of PHP's format of
// serialize() that makes a tree of plain data, no objects. So a tags() method of a
// class is not called, and an encrypted command stays closed. It hides no secrets:
// who shows what it reads does.
//
// Invariants:
//
//   - Input, depth, number of values, lengths of texts are bounded; a reference is
//     never expanded into what it refers to.
//   - A payload that cannot be read gives what could be read and a Problem, no error.
//   - Code of closures is left out.
package phpjob
