// Package turns shares the slots of one process between several workers.
//
// It claims and runs nothing: a worker asks it before each run.
//
// Invariants: no more runs at once than slots; a slot that comes free goes to the
// worker with the fewest running jobs among those that wait, and among equals to the
// one whose last turn is the longest ago. So of two workers that want a slot, the one with a
// thousand jobs delays the other by the rest of one run.
package turns
