// Package cli is the command line: a file for each topic, which parses its
// arguments, calls the services and prints what came back, as a table for people
// or as JSON for programs.
//
// It decides nothing that HTTP decides, too: that is in package ops and in the
// services (package app).
//
// Invariants:
//
//   - Exit codes are those of command_line.go; what a person reads goes to standard error
//     where --json was asked for.
//   - Foreign text is printed without control characters.
//   - A wrong argument ends with exit code 2 before anything is changed.
package cli
