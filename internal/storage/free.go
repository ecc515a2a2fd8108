//go:build linux || darwin

package storage

import (
	"fmt"
	"syscall"
)

// Free is the space left on the folder's disk for this user, in bytes.
func (l *Local) Free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &s); err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", l.dir, err)
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), nil
}
