// Package memory measures what this process occupies and steers Go's garbage
// collector: a limit for the whole process, and a harder working collector
// while somebody works with large pieces.
//
// It does not stop a process that has grown too large: the worker does.
package memory
