// Package breaker holds jobs back while something that they depend on is out:
// a mail server, a bucket, a search engine, a host that gets webhooks.
//
// It is not a rate limiter, and it knows nothing of what a dependency is: a
// name such as "smtp:mail.example.com:587" is all.
//
// Invariants:
//
//   - The state lies in the database (cmsjobs_breakers), so all workers see the
//     same, and its clock is the one that counts.
//   - While a breaker is open, Allow says so by jobs.RetryAfter: no attempt is
//     charged.
//   - When the wait is over, one caller in the whole fleet is let through to
//     probe. What it Records closes the breaker, or opens it for twice as long. A
//     prober that dies is replaced after ProbeTimeout.
//   - A dependency that never failed has no row, and costs one read.
package breaker
