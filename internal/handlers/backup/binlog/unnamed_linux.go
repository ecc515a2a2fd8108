package binlog

import (
	"fmt"
	"os"

	system "golang.org/x/sys/unix"
)

// unnamedFile is an error on file systems that cannot make one.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := system.Open(dir, system.O_TMPFILE|system.O_RDWR|system.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a file without a name: %w", err)
	}
	return os.NewFile(uintptr(fd), ""), nil
}
