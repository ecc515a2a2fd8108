// Package catalog knows the backups: which lie at the destinations and who made
// them, what became of every attempt, and what verifications showed.
//
// It makes, verifies and restores none, and decides on none's end. It reads the
// manifest files, so that it works where the service's own tables are lost; where they
// are not, they are an index of what was read, and what they know of a copy
// counts more than its manifest file, which anyone who writes to the destination can
// replace.
package catalog
