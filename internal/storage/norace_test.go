//go:build !race

package storage

const raceFactor = 1
