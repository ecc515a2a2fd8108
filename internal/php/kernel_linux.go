package php

import (
	"os"

	"golang.org/x/sys/unix"
)

const supported = true

// unread is how many bytes of a pipe nobody has read yet.
func unread(f *os.File) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // TIOCINQ is FIONREAD
	if err != nil {
		return 0
	}
	return max(n, 0)
}
