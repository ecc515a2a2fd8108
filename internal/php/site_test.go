//go:build unix

package php_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/phprows"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// site is a Laravel of Debian's with our package and jobs that misbehave
// (testdata/app), on a separate database.
type site struct {
	t   *testing.T
	db  *jobstest.Database
	dir string
	env []string
}

func newSite(t *testing.T, engine jobstest.Engine, retryAfter time.Duration) *site {
	t.Helper()
	needLaravel(t)
	return siteOn(t, jobstest.Open(t, engine), retryAfter)
}

// siteOn is a site on an empty database.
func siteOn(t *testing.T, on *jobstest.Database, retryAfter time.Duration) *site {
	t.Helper()
	s := &site{t: t, db: on, dir: t.TempDir()}
	dsn, err := mysql.ParseDSN(s.db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: s.db.DSN, MaxConnections: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s.db.DB = db
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(context.Background(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	db.MustExec("CREATE TABLE effects (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL, pid INT NOT NULL)")
	db.MustExec(`CREATE TABLE job_batches (id VARCHAR(255) PRIMARY KEY, name VARCHAR(255) NOT NULL, total_jobs INT NOT
		NULL, pending_jobs INT NOT NULL,
		failed_jobs INT NOT NULL, failed_job_ids TEXT NOT NULL, options MEDIUMTEXT NULL, cancelled_at INT NULL,
		created_at INT NOT NULL, finished_at INT NULL)`)
	s.env = []string{"PROBE_LARAVEL=" + laravel, "PROBE_DIR=" + s.dir, "DB_PORT=" + dsn.Addr[strings.LastIndexByte(dsn.Addr, ':')+1:],
		"DB_DATABASE=" + dsn.DBName,
		fmt.Sprint("RETRY_AFTER=", int(retryAfter.Seconds()))}
	return s
}

// laravel is a folder of another Laravel than Debian's, 8 to 13, with what composer installed
// (composer require laravel/framework); "" is Debian's.
var laravel = os.Getenv("CMSJOBS_TEST_LARAVEL")

func needLaravel(t *testing.T) {
	t.Helper()
	autoloader := "/usr/share/php/Illuminate/Queue/autoload.php"
	if laravel != "" {
		autoloader = filepath.Join(laravel, "vendor", "autoload.php")
	}
	for _, check := range [][]string{
		{"php", "-r", `exit(extension_loaded("pdo_mysql") && extension_loaded("pcntl") ? 0 : 1);`},
		{"test", "-f", autoloader}} {
		if err := exec.Command(check[0], check[1:]...).Run(); err != nil {
			jobstest.Skip(t, "no Laravel here (packages php-cli, php-mysql, php-laravel-framework): %v", err)
		}
	}
}

// artisan is a command of the site's.
func (s *site) artisan(args ...string) []string {
	file, err := filepath.Abs("testdata/app/artisan.php")
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.Concat([]string{"env"}, s.env, []string{"php", "-d", "memory_limit=64M", "-d",
		"display_errors=stderr", file}, args)
}

func (s *site) run(args ...string) {
	s.t.Helper()
	command := s.artisan(args...)
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		s.t.Fatalf("artisan %v: %v\n%s", args, err, out)
	}
}

// push enqueues probes: their names, each with what is set of it, as JSON.
func (s *site) push(queue string, probes ...string) {
	s.run(append([]string{"push", queue}, probes...)...)
}

// options are those of queue:work that both workers get.
func (s *site) options(more ...string) []string {
	return append([]string{"queue:work", "database", "--sleep=0", "--tries=1", "--timeout=60", "--memory=128",
		"--quiet"}, more...)
}

// config is that of a pool for a queue.
func (s *site) config(queue string, more ...string) php.Config {
	s.t.Helper()
	source, err := sourceOn(s.db.DB)
	if err != nil {
		s.t.Fatal(err)
	}
	return php.Config{Source: source, Queue: queue,
		Command:    s.artisan(s.options(append([]string{"--name=cmsjobs", "--queue=" + queue}, more...)...)...),
		Connection: "database", Timeout: time.Minute, Lease: lease, Worker: "test:1", Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(writer{s.t}, nil)), Grace: 10 * time.Second}
}

const lease = 90 * time.Second

func sourceOn(db *sqlx.DB) (php.Source, error) {
	opened, err := tables.Open(context.Background(), db, tables.Options{Registry: jobs.NewRegistry(),
		RetryAfter: lease})
	if err != nil {
		return nil, err
	}
	return phprows.New(opened, "database", "test:1")
}

// writer writes to the test's log.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// start runs a pool; the function that it returns stops it.
func (s *site) start(c php.Config) (stop func()) {
	s.t.Helper()
	_, stop = s.startPool(c)
	return stop
}

func (s *site) startPool(c php.Config) (pool *php.Pool, stop func()) {
	s.t.Helper()
	pool, err := php.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := pool.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	s.t.Cleanup(stop)
	return pool, stop
}

func (s *site) count(where string, args ...any) (n int) {
	s.t.Helper()
	if err := s.db.Get(&n, "SELECT COUNT(*) FROM "+where, args...); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// await waits until a condition holds.
func (s *site) await(what string, limit time.Duration, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); !holds(); {
		if time.Now().After(end) {
			s.t.Fatalf("after %s: not yet %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// drained waits until a queue has no rows.
func (s *site) drained(queue string, limit time.Duration) {
	s.t.Helper()
	s.t.Cleanup(func() {
		var left []struct {
			Name     string
			Attempts int
		}
		if err := s.db.Select(&left, s.db.Rebind("SELECT SUBSTR(payload, 1, 500) AS name, attempts FROM jobs "+
			"WHERE queue = ?"), queue); err != nil || len(left) > 0 {
			s.t.Logf("left: %+v, %v", left, err)
		}
	})
	s.await("the queue "+queue+" is empty", limit, func() bool {
		var n int
		err := s.db.Get(&n, s.db.Rebind("SELECT COUNT(*) FROM jobs WHERE queue = ?"), queue)
		return err == nil && n == 0
	})
}

// events are those of each probe since the last call, in their order.
func (s *site) events() map[string][]string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "events.log"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		probe, event, _ := strings.Cut(strings.TrimSpace(line), ": ")
		found[probe] = append(found[probe], event)
	}
	_ = os.Remove(filepath.Join(s.dir, "events.log")) // none yet
	return found
}
