//go:build !race

package jobstest

const raceFactor = 1
