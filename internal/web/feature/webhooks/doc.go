// Package webhooks is the page and the API of webhooks: subscriptions to events
// and what was sent to them.
//
// It sends nothing itself: Port is what it needs of the handler that does.
//
// Invariants: a secret is in the answer that created its webhook and nowhere
// else; only operators see what was sent and answered.
package webhooks
