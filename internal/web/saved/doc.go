// Package saved keeps the filters that people saved for their lists of jobs and runs.
//
// They lie in a table of ours and not in a cookie: a filter holds what people search
// for, which should not travel with each request; it is there on the phone, too; and
// nobody else who uses the browser has it. It is not a list of filters for everybody:
// who asks sees only what was saved under the same name of an account.
//
// Invariants: an owner has at most [Most] filters; names and filters are bounded; a
// filter gives no right: what it shows and changes is checked where that happens.
package saved
