// Package storagetest gives tests an S3 store: a versitygw process (a real server, which
// checks signatures), and before each bucket a proxy that can put faults between.
//
// It is no part of the program. It imports nothing of the module, so that the tests of
// package storage can use it, too.
//
// Invariant: the process ends, and its folder goes, when the test process ends, however
// that ends.
package storagetest
