// Command repository measures the repository of backups beside tar with zstd, and
// restic, on the same files: a first backup, one without changes, one with a
// hundredth of the files changed, a verification of all bytes, and a restore that is
// compared with the source.
//
// Each step is a process, whose processor time and memory the kernel counts. Peers
// that are not installed are left out.
package main
