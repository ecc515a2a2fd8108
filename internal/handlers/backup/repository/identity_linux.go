package repository

import (
	"io/fs"
	"strconv"
	"syscall"
	"time"
)

// openFlags keep the opening of a pipe from waiting for a writer.
const openFlags = syscall.O_NONBLOCK

// identify names a file by its inode and the moment of its last change: a file
// that was copied over another, or whose time was set back, has another one.
func identify(info fs.FileInfo) (string, time.Time) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}
	}
	changed := s.Ctim.Nano()
	return strconv.FormatUint(s.Ino, 10) + ":" + strconv.FormatInt(changed, 10), time.Unix(0, changed)
}
