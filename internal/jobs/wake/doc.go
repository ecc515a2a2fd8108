// Package wake lets one process of this host tell the workers of a database
// that there is something to do, so that a job starts within a millisecond
// instead of at the next poll. It uses datagrams on Unix sockets in a private
// folder.
//
// It is not a queue and not needed for correctness: a call that nobody hears
// is lost, and the poll finds the job. Invariants: calling never blocks and
// never fails an enqueue; a socket whose listener died is removed by the next
// caller.
package wake
