// Package crontab reads crontabs and the list of Laravel's scheduler, and writes
// the same work as sections of the configuration: schedule entries that run
// programs (command.run).
//
// It runs nothing and changes no file: a person reads what it wrote.
//
// Invariant: a line that cannot become an entry is named with its reason, never
// left out in silence.
package crontab
