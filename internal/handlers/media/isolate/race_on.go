//go:build race

package isolate

// watched says that the race detector runs, whose shadow of all memory no limit
// of data leaves space for.
const watched = true
