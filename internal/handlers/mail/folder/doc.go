// Package folder reads files that must lie under a folder, also where symlinks lead out of it, and
// no more of them than a limit.
package folder
