// Package markup reads elements of HTML that golang.org/x/net/html has split into
// tokens.
//
// It is no parser and cleans nothing: who shows what it returns escapes it.
package markup
