package php

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// seesUnread says that unread and monotonic are known here.
const supported, seesUnread = true, true

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

// monotonic is the clock that PHP calls hrtime.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // every Linux has it
	return time.Duration(t.Nano())
}

// lives says whether a process runs. One that has ended and was not fetched by its
// parent does not.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name before the state may hold spaces and brackets.
	_, state, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	return state != "" && !strings.ContainsAny(state[:1], "ZX")
}

// resident is how much memory a process has, in bytes; 0 is that it is not known. What
// processes share (the program, opcache) counts in each.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
