//go:build !linux && !darwin && !windows

package storage

import "errors"

// Free is not known on this system.
func (l *Local) Free() (int64, error) {
	return 0, errors.ErrUnsupported
}
