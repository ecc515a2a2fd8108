// Package schedule turns the clock into jobs: once a tick, among any number of
// instances.
//
// It is not a cron daemon and holds no state. gocron rings; on a ring every
// instance reads the database's clock once, computes which ticks of which
// entries are due (a pure function of expression, zone and that moment), and
// asks the store to insert (entry, tick) and the job in one transaction. The
// primary key lets one of them win.
//
// Invariants:
//
//   - A tick has one job or none, however many instances there are, wherever
//     their clocks stand and whenever they are killed.
//   - The clock of a host decides only when it looks, never what is due.
//   - A time of day that a zone leaves out is due at the first instant after
//     the gap; one that comes twice is due the first time. Entries of every
//     hour follow real time.
//   - What is missed is caught up by the entry's policy and otherwise recorded
//     with the reason.
package schedule
