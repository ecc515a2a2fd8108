//go:build !linux

package external

import (
	"errors"
	"os"
)

func limitMemory(*os.Process, int64) error {
	return errors.New("a memory limit is possible on Linux only")
}
