package jobstest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver that DSNs of this package name
)

var sharedMySQL once

// mysqlPort is the variable that names the port of a MySQL server on loopback.
const mysqlPort = "CMSJOBS_TEST_MYSQL_PORT"

// OwnMySQL starts a MySQL server of the test's own, for tests that kill it or set
// it up otherwise, and stops it when the test ends. options are added to its
// command line.
func OwnMySQL(t testing.TB, options ...string) *Server {
	t.Helper()
	return own(t, MySQL, func() (*Server, error) { return NewMySQL(options...) })
}

// NewMySQL prepares a MySQL server of the caller's own; Start starts it. options
// are added to its command line. Without them it differs from MySQL's defaults in
// what costs time: it writes no binary log and does not wait for the disk.
func NewMySQL(options ...string) (*Server, error) {
	daemon, err := MySQLProgram("mysqld")
	if err != nil {
		return nil, err
	}
	dir, err := privateDir("mysql", nil)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	template := filepath.Join(filepath.Dir(daemon), "template")
	if out, err := exec.Command("cp", "-r", "--reflink=auto", "--sparse=always", template,
		data).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copying MySQL's folder: %w\n%s", err, tail(out))
	}
	// Each server has a separate name, by which replication tells them apart.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Dir: dir}
	s.args = []string{daemon, "--datadir=" + data, "--tmpdir=" + dir, "--socket=" + filepath.Join(dir, "s.sock"),
		"--pid-file=" + filepath.Join(dir, "pid"), fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1",
		"--mysqlx=OFF",
		"--skip-name-resolve", "--secure-file-priv=", "--innodb-buffer-pool-size=128M",
		"--innodb-redo-log-capacity=64M",
		"--innodb-doublewrite=OFF", "--innodb-flush-log-at-trx-commit=2", "--max-allowed-packet=128M",
		"--max-connections=500", "--skip-log-bin"}
	if os.Geteuid() == 0 {
		s.args = append(s.args, "--user=root") // the folder with the program may be root's
	}
	s.args = append(s.args, options...)
	if logs := os.Getenv("CMSJOBS_TEST_MYSQL_LOGS"); logs != "" { // make corpus collects what is asked
		s.args = append(s.args, "--general-log", "--general-log-file="+filepath.Join(logs, filepath.Base(dir)+".log"))
	}
	s.ready = s.answers
	return s, nil
}

// MySQLProgram is the path of one of MySQL's own programs: mysqld, mysql, mysqldump. The
// clients are those of CMSJOBS_TEST_MYSQL_CLIENT_DIR where it is set: for a server of 5.7,
// whose passwords a client of 9 does not know.
func MySQLProgram(name string) (string, error) {
	dir := os.Getenv("CMSJOBS_TEST_MYSQL_DIR")
	if clients := os.Getenv("CMSJOBS_TEST_MYSQL_CLIENT_DIR"); clients != "" && name != "mysqld" {
		dir = clients
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "cmsjobs-test", "mysql")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there: internal/jobs/jobstest/mysql.sh installs it", path)
	}
	return path, nil
}

// PreferMySQLPrograms puts MySQL's own programs before those of the system, which may
// be MariaDB's, until the test ends.
func PreferMySQLPrograms(t testing.TB) {
	t.Helper()
	path, err := MySQLProgram("mysqldump")
	if err != nil {
		Skip(t, "no MySQL for the test: %v", err)
	}
	t.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// MySQLDSN is the data source name of a database on a MariaDB or MySQL server of ours.
func MySQLDSN(port int, database string) string {
	return (&Server{Port: port}).MySQLDSN(database)
}

// MySQLDSN is the data source name of a database on this MariaDB or MySQL server,
// as hosts of its network reach it. On a shared server it is the account's that
// CMSJOBS_TEST_ACCOUNT names; a server of a test's own has root only.
func (s *Server) MySQLDSN(database string) string {
	user := "root"
	if _, has := accountServers.Load(s.Port); has && database != "" {
		user = cmp.Or(os.Getenv(accountVariable), user)
	}
	return fmt.Sprintf("%s@tcp(%s:%d)/%s?parseTime=true&clientFoundRows=true&multiStatements=true", user,
		cmp.Or(s.host, "127.0.0.1"), s.Port, database)
}

// RootMySQL connects to this MariaDB or MySQL server as its root, to no database,
// until the test ends.
func (s *Server) RootMySQL(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.MySQLDSN(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// AsRoot lets a test use the server's root until it ends, also where
// CMSJOBS_TEST_ACCOUNT names another account: for what needs more rights than the
// service has, such as functions beside a binary log.
func AsRoot(t testing.TB) {
	t.Helper()
	t.Setenv(accountVariable, "root")
}

// SetGlobal sets a variable of the engine's shared MariaDB or MySQL server, as its
// root, and puts the old value back when the test ends.
func SetGlobal(t testing.TB, engine Engine, variable string, value int64) {
	t.Helper()
	root := Shared(t, engine).RootMySQL(t)
	var before int64
	if err := root.QueryRow("SELECT @@global." + variable).Scan(&before); err != nil {
		t.Fatalf("reading %s: %v", variable, err)
	}
	set := func(value int64) {
		t.Helper()
		if _, err := root.Exec("SET GLOBAL "+variable+" = ?", value); err != nil {
			t.Errorf("setting %s: %v", variable, err)
		}
	}
	set(value)
	t.Cleanup(func() { set(before) })
}

// answers says whether a MariaDB or MySQL server takes connections.
func (s *Server) answers() error {
	db, err := sql.Open("mysql", s.MySQLDSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Ping()
}
