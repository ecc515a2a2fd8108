package main

import (
	"io"
	"time"
)

// process is the running program as its services see it.
type process struct {
	self    string    // the program's own file, for processes of its own; "" is none
	version string    // as the build sets it
	err     io.Writer // where the log goes
	now     func() time.Time
	// stderrIsTTY says that err is a terminal: progress may move, lines have colours.
	stderrIsTTY bool
	lines       lineWriter // the log's way to err
}
