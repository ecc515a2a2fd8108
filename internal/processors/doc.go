// Package processors decides how many processors Go's scheduler uses for this process:
// few in a worker whose jobs are short, all while one takes long.
//
// Nothing that works in this process by itself, as SQLite does, gains by it.
//
// It is not a limit of what the process may use: the system sets that, by a control group.
package processors
