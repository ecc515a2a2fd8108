package feed

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks a file against all other processes, or fails at once. The lock
// ends with the process, however it ends.
func tryLock(f *os.File) error {
	const whole = ^uint32(0)
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, whole, whole, new(windows.Overlapped))
}
