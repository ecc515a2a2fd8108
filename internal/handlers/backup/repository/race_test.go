//go:build race

package repository

// raceEnabled says whether the race detector runs.
const raceEnabled = true
