//go:build !race

package isolate

// watched says whether the race detector runs.
const watched = false
