// Package access knows who may do what: tokens for programs, sessions and
// accounts for people, the roles and scopes of both, the count of wrong
// sign-ins, and the audit log. It speaks no HTTP.
//
// Invariants: a secret is stored as its SHA-256 only and shown once, when it is
// made; a wrong account costs as much time as a wrong password; a caller who
// is refused learns no reason that would help to guess; the audit log is only ever
// added to, and shortened by age.
package access
