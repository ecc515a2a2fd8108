// Package manual is the manual in the program: its chapters, an entrance for each
// reader, and a search.
//
// Anybody may read it, signed in or not: the texts are public, and a person who
// cannot sign in needs the chapter about signing in. Its pages name neither the
// version nor a figure of the installation.
//
// Invariant: a request costs memory and time that the manual's size bounds; it asks
// no database.
package manual
