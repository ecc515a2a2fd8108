//go:build unix

package jobstest

import (
	"os/exec"
	"syscall"
)

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
