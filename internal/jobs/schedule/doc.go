// Package schedule turns the clock into jobs: each due moment (tick) of an
// entry enqueues its job exactly once, among any number of instances whose
// clocks may be wrong and which may be restarted at any time.
//
// gocron only rings. On a ring each instance asks the database for the time,
// computes which ticks are due, and inserts (entry, tick) in the transaction
// that enqueues the job; the primary key lets one of them win.
//
// Invariants: which ticks are due is a pure function of expression, zone and
// two moments; an entry with fixed hours runs once for each of its wall-clock
// times on every calendar day (a time that daylight saving skips runs at the
// first instant after the gap, one that comes twice runs the first time);
// an entry of every hour follows real time; a tick that was not taken within
// the catch-up age is never taken.
package schedule
