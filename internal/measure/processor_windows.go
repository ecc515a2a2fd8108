package measure

import (
	"time"

	"golang.org/x/sys/windows"
)

// processorTime is what this process has used, its own and the kernel's for it.
func processorTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return 0
	}
	return time.Duration(ticks(kernel)+ticks(user)) * 100 // nanoseconds
}

// ticks are the hundreds of nanoseconds of a length of time.
func ticks(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
