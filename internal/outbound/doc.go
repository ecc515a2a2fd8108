// Package outbound makes HTTP clients for addresses that other people chose:
// IndexNow endpoints, webhooks, attachments. They cannot be used to reach what
// only this host can reach (server-side request forgery).
//
// It is not a general client: it has no proxy, no cookies, no credentials in
// URLs and keeps little in memory. Invariants: what is checked is the address
// that is really dialled, after DNS, for every connection and every redirect;
// only https, unless allowed; only ports 80 and 443, unless allowed; every
// exchange has a time limit; no body is read further than its limit.
package outbound
