// Package spool keeps the parts of a dump, compressed, in a private file until they are
// stored in the repositories of all destinations: one snapshot serves all of them.
package spool
