// Package dbconn bounds what a server may do to us before it has let us in as a
// database server: the bytes that it sends and the time that it takes, from the
// dial to the end of the authentication.
//
// It is no pool and knows no DSN: callers give it the drivers' own
// configurations. What a server sends later, as answers to statements, is
// bounded by the statements and by the drivers.
//
// Invariants:
//
//   - A connection is bounded until its driver has it, and free from then on.
//   - What a greeting broke is in the error, which wraps ErrGreeting, whatever the
//     driver makes of it.
package dbconn
