package setup

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// firstPort is the page's usual one; as many as portsTried after it are looked at.
const firstPort, portsTried = 8090, 50

// Look finds out about this host. program is the file of this program.
func Look(program string) (Host, error) {
	h := Host{Root: os.Geteuid() == 0, Program: program, Systemd: there("/run/systemd/system") && runs("systemctl"),
		Supervisor: there("/etc/supervisor/conf.d") && runs("supervisorctl"), Crontab: runs("crontab")}
	var err error
	if h.Account, err = current(); err != nil {
		return h, err
	}
	if h.ConfigDir, err = os.UserConfigDir(); err != nil {
		return h, fmt.Errorf("looking for the account's folder of configurations: %w", err)
	}
	h.Port, err = freePort()
	return h, err
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func runs(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// freePort is one of this host's own address that nothing listens to.
func freePort() (int, error) {
	var errs []error
	for port := firstPort; port < firstPort+portsTried; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("no port is free for the page: %w", errors.Join(errs...))
}

// Owner is the account in whose name the CMS writes: the owner of its folder
// "storage".
func Owner(dir string) (Account, error) {
	for _, folder := range []string{filepath.Join(dir, "storage"), dir} {
		info, err := os.Stat(folder)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return Account{}, err
		}
		return ownerOf(info)
	}
	return Account{}, fmt.Errorf("there is no folder %s", dir)
}
