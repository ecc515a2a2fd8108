// Package purge removes pages from the caches in front of a site, CDNs and reverse
// proxies, and then asks for them, so that the next reader finds them cached (type
// cache.purge).
//
// It does not clear the CMS's own caches (package cache does) and does not know
// what changed: a job names addresses, or all of the site.
//
// Invariants:
//
//   - Only addresses of the site are purged and asked for, whatever the job says.
//   - A purge can be repeated: a job that fails at one destination is retried at
//     all of them.
//   - Tokens of destinations are in the configuration only, not in payloads,
//     results or errors.
package purge
