package isolate

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// started is what a Go process has mapped before it does anything.
const started = 128 << 20

// limit bounds this process. Data is what can be written to: address space that
// Go only reserves does not count.
func limit(memory int64, of time.Duration) error {
	set := func(what int, most uint64) error {
		return syscall.Setrlimit(what, &syscall.Rlimit{Cur: most, Max: most})
	}
	seconds := uint64(of/time.Second) + 1
	var data error
	if !watched {
		data = set(syscall.RLIMIT_DATA, uint64(memory)+started)
	}
	return errors.Join(data, set(syscall.RLIMIT_CPU, seconds), set(syscall.RLIMIT_CORE, 0),
		set(syscall.RLIMIT_FSIZE, 0))
}

func outOfTime(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL)
}
