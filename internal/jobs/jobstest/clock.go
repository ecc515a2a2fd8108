package jobstest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// MovableClock is the wall clock of a server that runs under libfaketime. The
// server's monotonic clock goes on, as on a host whose time is corrected.
type MovableClock struct{ file string }

// NewMovableClock gives s, which was not started yet, a clock that can be moved.
// Its file is in dir, which the server's account must be able to read.
func NewMovableClock(s *Server, dir string) (*MovableClock, error) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(found) == 0 {
		return nil, errors.New("libfaketime is not installed (the package faketime)")
	}
	c := &MovableClock{filepath.Join(dir, "time")}
	s.Env = append(s.Env, "LD_PRELOAD="+found[0], "FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1")
	return c, c.Move(0)
}

// Move sets the clock to so much before or after the true time, at once.
func (c *MovableClock) Move(by time.Duration) error {
	next := c.file + ".next"
	//nolint:gosec // the server's account reads it
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int(by.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}
