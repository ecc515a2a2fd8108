//go:build unix

package php

import (
	"errors"
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

// lockFile locks a file for this process, as long as it lives; an error when another has it.
func lockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	locked := error(nil)
	err = raw.Control(func(fd uintptr) { locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	return errors.Join(err, locked)
}
