//go:build !unix

package jobstest

import (
	"errors"
	"os/exec"
	"syscall"
)

// credential is the account of a server.
type credential struct{ uid, gid uint32 }

func runAs(*exec.Cmd, *credential, bool) {}

func signalGroup(int, syscall.Signal) error {
	return errors.New("signals to a process group need a Unix")
}
