//go:build !windows

package measure

import (
	"syscall"
	"time"
)

// processorTime is what this process has used, its own and the kernel's for it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
