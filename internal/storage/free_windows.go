package storage

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Free is the space left on the folder's disk for this user, in bytes.
func (l *Local) Free() (int64, error) {
	dir, err := windows.UTF16PtrFromString(l.dir)
	if err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", l.dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", l.dir, err)
	}
	return int64(min(free, 1<<62)), nil
}
