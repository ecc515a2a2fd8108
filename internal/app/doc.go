// Package app is the composition root: it opens the databases, the site, the
// store and the handlers that the configuration names, and joins them into
// Services. It is the only package that knows all others.
//
// It has no command line (package cli) and answers no HTTP (package web); what it
// joins does not know it.
//
// Invariants:
//
//   - What Open returns is closed by Services.Close; a failed Open leaves nothing open.
//   - A handler that cannot work here is left out with a word in the log: its jobs
//     wait for a worker that can run them.
//   - Clock, log and file name of the process come from Process, none from globals.
package app
