// Package demo makes a sample site that shows everything at once with nothing to
// install: an embedded SQLite database in the CMS's own table shapes, pages,
// posts, photos, an access log, and jobs enqueued as the CMS enqueues them. A second,
// smaller site beside it shows several sites in one process.
//
// It opens no services and prints nothing: package cli does.
//
// Invariants:
//
//   - The same sites are made each time; only times differ.
//   - Nothing leaves the demo's folder and this machine.
//   - A folder that holds something else is left alone.
package demo
