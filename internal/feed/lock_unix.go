//go:build !windows

package feed

import (
	"os"
	"syscall"
)

// tryLock locks a file against all other processes, or fails at once. The lock
// ends with the process, however it ends.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
