//go:build unix

package jobstest

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Pause and Continue are the signals that stop a process where it is and let it go on.
const (
	Pause    = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// ProcessorTime is what this process has used so far.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// credential is the account of a server.
type credential struct{ uid, gid uint32 }

// runAs makes a command run as an account (nil is ours), in a separate
// process group if asked.
func runAs(c *exec.Cmd, owner *credential, group bool) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	if owner != nil {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: owner.uid, Gid: owner.gid}
	}
}

func signalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }
