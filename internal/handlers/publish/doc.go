// Package publish makes content public at its moment, and lets the site know.
//
// It does not generate sitemaps, ping search engines or send mail: what a
// publication causes is named by a func that it is given.
//
// Two conventions work. A draft (status draft or pending) with a date, in a
// column for it or in the job, is set to published when the date comes. In
// the real CMS's post-scheduler the date is created_at and the status is
// published already: when it comes, caches and sitemap are refreshed.
//
// Invariants:
//
//   - A piece of content has at most one pending publication
//     (cmsjobs_publications). Changing its date moves it; taking the date away,
//     or deleting the content, cancels it.
//   - A job looks at the row before it acts: one that comes too early, too late
//     or for nothing changes nothing. Running it twice publishes once.
//   - The watcher remembers nothing of the content: it compares what readers see
//     with what shows it. A crash, a lost call of the feed or a second watcher
//     lose nothing, and at worst ask twice for one sitemap.
//   - Its looks have a bounded part of the time, whatever calls for them.
package publish
