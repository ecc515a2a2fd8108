//go:build !linux

package binlog

import (
	"errors"
	"os"
)

func unnamedFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
