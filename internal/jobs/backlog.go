package jobs

import "time"

// QueueBacklog is what a bounded look at one queue shows: enough to say
// whether something is wrong with it. Counts are of the rows that were read
// and may be smaller than the truth in a long queue. PHP's own rows are in none.
type QueueBacklog struct {
	Queue  string
	Paused bool
	// Due jobs of known types wait for a worker; OldestDue is how long the
	// longest of them has waited.
	Due       int
	OldestDue time.Duration
	// Rated jobs are due too, and wait because their type begins at its rate.
	Rated int
	// Unknown counts due jobs by a type that no one here can run.
	Unknown       map[string]int
	OldestUnknown time.Duration
	// Stalled jobs were claimed, and their lease ended without an outcome;
	// OldestStalled is how long ago the first of these leases ended.
	Stalled       int
	OldestStalled time.Duration
}

// Volume is how many rows the tables of the queue hold, about: Waiting is
// counted up to the limit that was asked for, the others are spans of numbers.
type Volume struct {
	Waiting, Runs, Failed int64
}
