// Package testgolden compares what a test made with a file that is kept beside
// it, and writes that file when the test runs with -update.
//
// It is for tests only: nothing that ships imports it. `make golden` writes all
// golden files.
package testgolden
