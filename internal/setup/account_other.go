//go:build !unix

package setup

import (
	"errors"
	"io/fs"
	"os/exec"
)

var errNoHost = errors.New("setup is for Linux and macOS: on Windows start cmsjobs --cms DIR run")

func ownerOf(fs.FileInfo) (Account, error) { return Account{}, errNoHost }

func current() (Account, error) { return Account{}, errNoHost }

// As does nothing here.
func As(*exec.Cmd, Account) {}
