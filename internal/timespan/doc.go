// Package timespan reads lengths of time as people write them: Go's durations
// and days besides. It knows no clock; package ops reads points of time.
//
// Invariant: a bare number is refused, since nobody knows its unit; only 0 is
// no time.
package timespan
