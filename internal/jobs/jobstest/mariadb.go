package jobstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var sharedMariaDB once

// OwnMariaDB starts a MariaDB server of the test's own, for tests that kill it
// or set it up otherwise, and stops it when the test ends. options are added to
// its command line.
func OwnMariaDB(t testing.TB, options ...string) *Server {
	t.Helper()
	return own(t, MariaDB, func() (*Server, error) { return NewMariaDB(options...) })
}

// NewMariaDB prepares a MariaDB server of the caller's own; Start starts it.
// options are added to its command line.
func NewMariaDB(options ...string) (*Server, error) {
	daemon, err := program("mariadbd", "mysqld")
	if err != nil {
		return nil, err
	}
	installer, err := program("mariadb-install-db", "mysql_install_db")
	if err != nil {
		return nil, err
	}
	owner, err := account("mysql")
	if err != nil {
		return nil, err
	}
	dir, err := privateDir("mariadb", owner)
	if err != nil {
		return nil, err
	}
	data, accounts := filepath.Join(dir, "data"), filepath.Join(dir, "accounts.sql")
	// For servers that listen on more than loopback: nodes of a cluster.
	if err := os.WriteFile(accounts, []byte("FLUSH PRIVILEGES;\nCREATE USER root@'%';\nGRANT ALL ON *.* TO root@'%' "+
		"WITH GRANT OPTION;\n"), 0o644); err != nil {
		return nil, err
	}
	install := exec.Command(installer, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
		"--datadir="+data, "--tmpdir="+dir, "--extra-file="+accounts)
	runAs(install, owner, false)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("preparing MariaDB's folder: %w\n%s", err, tail(out))
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Dir: dir, owner: owner}
	s.args = append([]string{daemon, "--no-defaults", "--datadir=" + data, "--tmpdir=" + dir, "--socket=" +
		filepath.Join(dir, "s.sock"),
		"--pid-file=" + filepath.Join(dir, "pid"), fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1",
		"--skip-name-resolve", "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=64M",
		"--max-allowed-packet=128M",
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_unicode_ci", "--max-connections=500"}, options...)
	s.ready = s.answers
	return s, nil
}
