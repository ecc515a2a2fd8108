// Package mail is the pages and the API of mail: the log, templates and suppressed addresses.
//
// It sends nothing itself: Log, Templates and Suppressions are what it needs of the
// handler that does.
//
// Invariant: a mail's body is shown in a frame of no origin in which nothing runs or loads.
package mail
