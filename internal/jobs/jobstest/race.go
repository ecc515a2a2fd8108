//go:build race

package jobstest

// raceFactor is how much more memory a program takes under the race detector
// (its documentation says 5 to 10 times).
const raceFactor = 5
