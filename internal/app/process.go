package app

import (
	"io"
	"time"
)

// Process is the running program as its services see it.
type Process struct {
	Self    string    // the program's own file, for separate processes; "" is none
	Version string    // as the build sets it
	Err     io.Writer // where the log goes
	Now     func() time.Time
	// StderrIsTTY says that err is a terminal: progress may move, lines have colours.
	StderrIsTTY bool
	lines       lineWriter // the log's way to err
}
