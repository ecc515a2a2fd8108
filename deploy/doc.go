// Package deploy holds the files that keep the service running on a host: what
// docs/install.md shows to copy, and what "cmsjobs setup" fills in and writes.
package deploy
