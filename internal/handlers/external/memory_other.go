//go:build !linux

package external

import (
	"errors"
	"os/exec"
)

func limitMemory(*exec.Cmd, int64) error {
	return errors.New("a memory limit is possible on Linux only")
}
