// Package tokens is the page and the API of API tokens: the credentials of programs.
//
// It checks none: package access keeps them, and the server's authorization asks it.
//
// Invariant: a secret is in the answer that created its token and nowhere else.
package tokens
