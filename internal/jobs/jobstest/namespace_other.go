//go:build !linux

package jobstest

import (
	"errors"
	"testing"
)

// Network is Linux's.
type Network struct{}

var errNoNamespaces = errors.New("network namespaces need Linux")

// NewNetwork says that there is none here.
func NewNetwork(int) (*Network, error) { return nil, errNoNamespaces }

// Space, Host and Address name nothing here.
func (*Network) Space(int) string { return "" }

// Host names nothing here.
func (*Network) Host(int) string { return "" }

// Address names nothing here.
func (*Network) Address() string { return "" }

// Cut does nothing here.
func (*Network) Cut(int) error { return errNoNamespaces }

// Join does nothing here.
func (*Network) Join(int) error { return errNoNamespaces }

// Close does nothing here.
func (*Network) Close() {}

// InNamespace calls f, as there is one namespace only.
func InNamespace(_ string, f func() error) error { return f() }

// SmallDisk skips the test: a small disk needs Linux.
func SmallDisk(t testing.TB, _, _ string) {
	t.Helper()
	t.Skip("a small disk needs Linux")
}
