//go:build unix

package setup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ownerOf is the account that a file belongs to.
func ownerOf(info fs.FileInfo) (Account, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Account{}, errors.New("this file system names no owner")
	}
	return account(int(stat.Uid), int(stat.Gid)), nil
}

func current() (Account, error) { return account(os.Geteuid(), os.Getegid()), nil }

// account names a user and a group; a number where the host has no name for it.
func account(uid, gid int) Account {
	a := Account{Name: strconv.Itoa(uid), Group: strconv.Itoa(gid), UID: uid, GID: gid}
	if u, err := user.LookupId(a.Name); err == nil {
		a.Name = u.Username
	}
	if g, err := user.LookupGroupId(a.Group); err == nil {
		a.Group = g.Name
	}
	return a
}

// As makes a command run as an account, where this program is the superuser's.
func As(c *exec.Cmd, a Account) {
	if os.Geteuid() == 0 && a.UID != 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}}
		c.Dir = "/"
	}
}
