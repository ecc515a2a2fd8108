//go:build !unix

package jobstest

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Pause and Continue are signals that only a Unix has: sending them fails.
const (
	Pause    = syscall.Signal(-1)
	Continue = syscall.Signal(-2)
)

// ProcessorTime is what this process has used so far: here it is not known.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	t.Skip("the processor's time needs a Unix")
	return 0
}

// credential is the account of a server.
type credential struct{ uid, gid uint32 }

func runAs(*exec.Cmd, *credential, bool) {}

func signalGroup(int, syscall.Signal) error {
	return errors.New("signals to a process group need a Unix")
}
