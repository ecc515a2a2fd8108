// Package remote lets programs in any language run jobs of their types, through
// calls that the HTTP API makes: Register, Claim, Beat, End, Leave. Each
// registered program is a session, and a session is a worker of package jobs whose
// handlers hand the job out and wait for its end. So a job has the same lease,
// attempts, timeout, limits, history and log lines as any other.
//
// It is not HTTP and not a second queue: it writes no SQL. A session lives in the
// memory of one process; when that process ends, the program registers again.
//
// Invariants:
//
//   - A session runs types of its program only, never those of the service.
//   - At most Slots jobs of a session are claimed at a time.
//   - A job that was handed out has a new random name (Lease). An end that names
//     another is refused, and changes nothing.
//   - A program that says nothing of a job for Registration.Lease has lost it: the
//     attempt counts, and the job runs again. Its program must have stopped it then.
//   - End returns nil only when the end is written.
package remote
