// Package audit is the page and the API of the audit log (who changed what, when
// and from where) and of addresses whose sign-ins are locked.
//
// It writes no entries: the server does, for each request that changes something.
//
// Invariant: administrators only.
package audit
