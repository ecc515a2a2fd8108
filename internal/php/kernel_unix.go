//go:build unix

package php

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process the first of a process group: killGroup ends it
// with what its jobs have started.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a process and its children at once.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// terminate asks the worker to end after its job.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// readNow reads without waiting.
func readNow(fd int, buffer []byte) (int, error) { return syscall.Read(fd, buffer) }
