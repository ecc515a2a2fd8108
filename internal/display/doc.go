// Package display writes values for people who read them in a terminal, a log or
// a message: times as "3m ago", counts with the right plural, foreign text
// without control characters.
//
// It knows no language but English, no colours and no tables.
//
// Invariants:
//
//   - Its functions are pure: the present time is an argument.
//   - What Printable and OneLine return cannot steer a terminal or forge a line.
package display
