// Package mail sends mail (type mail.send, alias email.send) and knows which
// addresses must not get any.
//
// It is not a mail server: it hands messages to one (SMTP, sendmail), to the
// log, or to files, and it keeps no separate queue beside the jobs.
//
// Invariants:
//
//   - The ledger, cmsjobs_mail, has one row for each recipient of a job. It says
//     "sending" before the DATA command and gets the answer afterwards. A retry
//     leaves out the recipients whose row says that they are settled.
//   - A connection that died between the final dot and its answer leaves the
//     recipient "unknown" (RFC 1047 says why nobody can know): it is not sent
//     again unless Config.ResendUnknown, and the job fails so that a person sees
//     it. Before the final dot a mail was not sent, whatever else happened.
//   - The Message-ID is made from the job's uuid, so every copy that the two
//     sides may ever make of one mail has the same.
//   - Nothing that a payload or a setting of the CMS says becomes a header line,
//     an SMTP command, a program's name, or a path outside the allowed folders.
//   - TLS certificates are verified. The CMS itself does not do that.
//   - The CMS's settings are read for each job, so an administrator's change counts
//     for the next mail.
package mail
