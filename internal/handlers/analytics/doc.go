// Package analytics counts the visits of a site: it collects page views, rolls
// them up by hour and day, and writes reports.
//
// It is not a tracker: no cookies, no addresses, nothing that outlives a day.
// A visitor is a hash of address, agent and host under a random salt of the
// day, and the salt is destroyed after 48 hours.
//
// Invariants: a roll-up replaces a day's figures by what its raw rows say, so
// that any number of runs, in any order, at once or apart, give the same
// tables; days are the CMS's calendar days; a collector never slows the site:
// a full buffer drops views and counts them.
package analytics
