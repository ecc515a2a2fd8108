// Package explain says in sentences why a job is not running, and what it
// waits for. It is a pure function over a snapshot, so that page, API and
// command say the same. It reads nothing itself.
package explain
