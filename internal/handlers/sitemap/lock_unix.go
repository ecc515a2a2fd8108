//go:build !windows

package sitemap

import (
	"os"
	"syscall"
)

// tryLock locks a file against all other processes, or fails at once.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
