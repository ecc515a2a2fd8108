package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// BeginSync begins to write a file to the disk and does not wait, so that a later sync of many files
// waits once. That it cannot is no fault: the sync does it then.
func BeginSync(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			_ = unix.SyncFileRange(int(fd), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
		})
	}
}
