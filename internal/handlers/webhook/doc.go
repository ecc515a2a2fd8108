// Package webhook tells other programs what happened here (type
// webhook.deliver): it keeps who wants to hear of what, signs, sends, and logs.
//
// It is not a message bus: an event becomes one job for each subscription at
// the moment it happens, and nobody can subscribe to the past.
//
// Invariants:
//
//   - Requests are signed as standardwebhooks.com says. The webhook-id is the
//     same over all attempts and redeliveries of one message.
//   - The client refuses addresses that are not public after DNS (package
//     outbound); redirects are answers, and not followed.
//   - A secret is shown once, when it is made. It is in no log, list or error.
//   - What a delivery says lies in its own order, which the job names; a
//     subscription gets the events that it wants and no others.
//   - A job about this package's own failure makes no webhook, or one failure
//     would cause the next for ever.
package webhook
