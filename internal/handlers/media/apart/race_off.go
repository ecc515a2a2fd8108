//go:build !race

package apart

// watched says whether the race detector runs.
const watched = false
