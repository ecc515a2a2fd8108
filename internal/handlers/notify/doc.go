// Package notify tells the administrators what they must know (type
// notification.send, alias send_notification): jobs that failed, schedules
// that were missed, backups that are bad.
//
// It is not for a site's visitors, and not an event stream (package webhook
// is). A message goes by mail, to chats, and into the CMS's own list.
//
// Invariants:
//
//   - Of one topic ("job.failed:sitemap.generate") at most one message goes out in
//     an interval, an hour by default. What else happens meanwhile is counted, and
//     told in one message when the interval is over: nothing is forgotten.
//   - Each channel has its own job, so one that is out neither holds up nor
//     repeats the others.
//   - The addresses and tokens of channels stand in the configuration only, not in
//     payloads, results or errors.
package notify
