// Package health judges the backups that lie at the destinations: too old,
// unverified, suddenly small, of unknown origin; and sums a week up.
//
// It tells nobody and changes nothing.
package health
