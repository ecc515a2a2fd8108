// Command cmsjobs is the background-jobs service of a CMS: workers, scheduler,
// web and their tools in one binary.
//
// Each command is a thin shell in a file of its own: it reads its words, calls
// a room, prints what came back. wire.go is the one place where rooms meet.
package main
