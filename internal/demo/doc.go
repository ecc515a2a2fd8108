// Package demo makes a sample site that shows everything at once with nothing to
// install: an embedded SQLite database in the CMS's own table shapes, pages,
// posts, photos, an access log, and jobs enqueued as the CMS enqueues them.
//
// It opens no services and prints nothing: package cli does.
//
// Invariants:
//
//   - The same site is made each time; only times differ.
//   - Nothing leaves the site's folder and this machine.
//   - A folder that holds something else is left alone.
package demo
