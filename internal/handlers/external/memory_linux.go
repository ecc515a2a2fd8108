package external

import (
	"os"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the address space of a process and of what it starts.
func limitMemory(p *os.Process, most int64) error {
	limit := unix.Rlimit{Cur: uint64(most), Max: uint64(most)}
	return unix.Prlimit(p.Pid, unix.RLIMIT_AS, &limit, nil)
}
