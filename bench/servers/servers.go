package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// Server is a database server that a program started for itself. Stop ends it.
type Server struct {
	*jobstest.Server
	Name string // MariaDB, PostgreSQL, SQLite
	pid  int
	made int    // databases so far
	dir  string // of SQLite's files
}

// durable are the options that decide what a commit costs. MySQL and MariaDB get the
// same: each commit waits for the disk, pages are written twice, and there is no
// binary log, which is MariaDB's default.
var durable = []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON", "--skip-log-bin",
	"--innodb-buffer-pool-size=512M"}

// The size of the redo log, as MySQL and as MariaDB names it. It takes what a measurement
// writes: with the 64 MB of the tests it is full after 40,000 jobs, and each statement waits
// for pages to be written.
const (
	mysqlRedoLog   = "innodb_redo_log_capacity"
	mariadbRedoLog = "innodb_log_file_size"
	redoLogSize    = "512M"
)

func newMySQL(options []string) func() (*jobstest.Server, error) {
	return func() (*jobstest.Server, error) {
		return jobstest.NewMySQL(append(slices.Clone(options), "--"+mysqlRedoLog+"="+redoLogSize)...)
	}
}

func newMariaDB(options []string) func() (*jobstest.Server, error) {
	return func() (*jobstest.Server, error) {
		return jobstest.NewMariaDB(append(slices.Clone(options), "--"+mariadbRedoLog+"="+redoLogSize)...)
	}
}

// MySQL starts a MySQL that is as durable as MariaDB.
func MySQL() (*Server, error) {
	return start("MySQL", newMySQL(durable), "pid")
}

// MariaDB starts a MariaDB that is as durable as MySQL.
func MariaDB() (*Server, error) {
	return start("MariaDB", newMariaDB(durable), "pid")
}

// uninstrumented are the options of a comparison of the servers themselves: MySQL ships
// with its instrumentation on, MariaDB with it off, and it costs MySQL a tenth.
var uninstrumented = append(slices.Clone(durable), "--performance-schema=OFF")

// PlainMySQL is MySQL without instrumentation, as MariaDB is.
func PlainMySQL() (*Server, error) {
	return start("MySQL", newMySQL(uninstrumented), "pid")
}

// PlainMariaDB is MariaDB without instrumentation, which is its default.
func PlainMariaDB() (*Server, error) {
	return start("MariaDB", newMariaDB(uninstrumented), "pid")
}

// logged are the options of a server that writes a binary log, as MySQL does by
// default.
var logged = []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON", "--innodb-buffer-pool-size=512M",
	"--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1"}

// LoggedMySQL is MySQL with a binary log.
func LoggedMySQL() (*Server, error) {
	return start("MySQL", newMySQL(logged), "pid")
}

// LoggedMariaDB is MariaDB with a binary log.
func LoggedMariaDB() (*Server, error) {
	return start("MariaDB", newMariaDB(logged), "pid")
}

// SettingNames are the variables that decide what a commit costs, by MySQL's names.
var SettingNames = []string{"innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method", "log_bin",
	"innodb_buffer_pool_size", mysqlRedoLog}

// Settings are the name, the version and the values of SettingNames of a running
// MySQL or MariaDB, as the server says them.
func (s *Server) Settings(ctx context.Context) ([]string, error) {
	db, err := sqlx.Open("mysql", jobstest.MySQLDSN(s.Port, ""))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	values := []string{s.Name}
	for _, name := range append([]string{"version"}, SettingNames...) {
		if name == mysqlRedoLog && s.Name == "MariaDB" {
			name = mariadbRedoLog
		}
		var value string // by SHOW, as @@ answers ON on one server and 1 on the other
		if err := db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES LIKE '"+name+"'").Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", name, s.Name, err)
		}
		values = append(values, value)
	}
	return values, nil
}

// PostgreSQL starts a PostgreSQL.
func PostgreSQL() (*Server, error) {
	return start("PostgreSQL", func() (*jobstest.Server, error) { return jobstest.NewPostgres() }, postmaster)
}

// LoggedPostgreSQL is PostgreSQL with a log that others can subscribe to.
func LoggedPostgreSQL() (*Server, error) {
	return start("PostgreSQL", func() (*jobstest.Server, error) {
		return jobstest.NewPostgres("-c", "wal_level=logical")
	}, postmaster)
}

// CrowdedPostgreSQL is PostgreSQL for many worker processes: each peer has as many
// connections as it likes best.
func CrowdedPostgreSQL() (*Server, error) {
	return start("PostgreSQL", func() (*jobstest.Server, error) {
		return jobstest.NewPostgres("-c", "max_connections=2000")
	}, postmaster)
}

// postmaster is the file of PostgreSQL's process id, in its folder.
const postmaster = "data/postmaster.pid"

// SQLite stands for a server where there is none: databases are files in dir,
// and all processor time is the client's.
func SQLite(dir string) *Server { return &Server{Name: "SQLite", dir: dir} }

func start(name string, create func() (*jobstest.Server, error), pidFile string) (*Server, error) {
	s, err := create()
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, pidFile))
	if err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		var pid int
		if pid, err = strconv.Atoi(strings.TrimSpace(first)); err == nil {
			return &Server{Server: s, Name: name, pid: pid}, nil
		}
	}
	s.Stop()
	return nil, fmt.Errorf("finding the process of %s: %w", name, err)
}

// Database makes an empty database and names it for drivers.
func (s *Server) Database() (dsn, name string, err error) {
	s.made++
	name = fmt.Sprintf("bench%d", s.made)
	if s.Name == "SQLite" {
		path := filepath.Join(s.dir, name+".sqlite")
		return "sqlite:" + path, name, os.WriteFile(path, nil, 0o600)
	}
	driver, admin := "mysql", jobstest.MySQLDSN(s.Port, "")
	dsn = fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", s.Port, name)
	if s.Name == "PostgreSQL" {
		driver, admin, dsn = "pgx", jobstest.PostgresDSN(s.Port, "postgres"), jobstest.PostgresDSN(s.Port, name)
	}
	db, err := sqlx.Open(driver, admin)
	if err != nil {
		return "", "", err
	}
	defer db.Close()
	_, err = db.Exec("CREATE DATABASE " + name)
	return dsn, name, err
}

// CMS makes a database with Laravel's tables and ours.
func (s *Server) CMS(ctx context.Context) (db *sqlx.DB, dsn, name string, err error) {
	if dsn, name, err = s.Database(); err != nil {
		return nil, "", "", err
	}
	if db, err = database.Connect(ctx, database.ConnectOptions{DSN: dsn}); err != nil {
		return nil, "", "", err
	}
	_, err = tables.CreateTables(ctx, db, tables.Stock, "")
	if err == nil {
		err = migrations.Up(ctx, db)
	}
	if err != nil {
		return nil, "", "", errors.Join(err, db.Close())
	}
	return db, dsn, name, nil
}

// CPU is the processor time that the server has used: of its process, and of
// its children, those that ended included.
func (s *Server) CPU() time.Duration {
	if s.pid == 0 { // it runs in our own process
		return 0
	}
	for {
		before := Ticks(s.pid, true)
		children := time.Duration(0)
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			if f := stat(pid); len(f) > 1 && f[1] == strconv.Itoa(s.pid) {
				children += Ticks(pid, false)
			}
		}
		// A child that ended meanwhile would be counted twice, or not at all.
		if after := Ticks(s.pid, true); after-before < 20*time.Millisecond {
			return after + children
		}
	}
}

// stat are the fields of /proc/PID/stat behind the command's name.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil // it has ended
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// Ticks is the processor time of a process, or with children that of those that
// it waited for, too.
func Ticks(pid int, children bool) time.Duration {
	f := stat(pid)
	if len(f) < 15 {
		return 0
	}
	to := 13
	if children {
		to = 15
	}
	sum := 0
	for _, word := range f[11:to] { // utime, stime, cutime, cstime
		n, _ := strconv.Atoi(word)
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond // USER_HZ is 100 on all of Linux
}

// AsOurs lets the collector of a peer in Go wait for twice as much as it does by itself, as
// our workers let theirs.
func AsOurs(peer *exec.Cmd) { peer.Env = append(peer.Environ(), "GOGC=200") }

// OwnCPU is what this process has used.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
