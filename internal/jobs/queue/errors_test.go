package queue

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

func TestClassify(t *testing.T) {
	for class, numbers := range map[database.Class][]uint16{
		database.RetryTransaction: {1213, 1205, 1020, 1047, 3100, 3101, 8022, 9007},
		database.Unknown:          {2006, 2013, 1927, 1053, 1317, 4031},
		database.Elsewhere:        {1290, 1792, 1836, 1129, 1040, 1226, 3032, 3168},
		database.JobsFault:        {1264, 1366, 1406, 1292, 1153, 3140, 3141, 3143, 3144, 3819, 4025},
		database.StopClaiming:     {1114, 1021, 28, 1026, 1030, 3675, 1045, 3159, 1820, 1862, 3118, 4151},
		database.Schema:           {1044, 1142, 1146, 1054},
		database.TooSlow:          {1969, 3024},
		database.Other:            {1064, 1062},
	} {
		for _, n := range numbers {
			if got := database.Classify(fmt.Errorf("claiming: %w", &mysql.MySQLError{Number: n})); got != class {
				t.Errorf("MySQL %d is %v, want %v", n, got, class)
			}
		}
	}
	for code, class := range map[string]database.Class{"40001": database.RetryTransaction,
		"40P01": database.RetryTransaction, "55P03": database.RetryTransaction, "08006": database.Unknown,
		"57P01": database.Unknown, "25006": database.Elsewhere,
		"53300": database.Elsewhere, "57P03": database.Elsewhere, "22001": database.JobsFault,
		"22021": database.JobsFault, "23514": database.JobsFault, "53100": database.StopClaiming,
		"42501": database.Schema, "42P01": database.Schema, "42703": database.Schema, "57014": database.TooSlow,
		"23505": database.Other} {
		if got := database.Classify(fmt.Errorf("settling: %w", &pgconn.PgError{Code: code})); got != class {
			t.Errorf("PostgreSQL %s is %v, want %v", code, got, class)
		}
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, mysql.ErrInvalidConn,
		syscall.ECONNRESET, net.ErrClosed, context.DeadlineExceeded,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}} {
		if err == error(syscall.ECONNRESET) {
			err = &net.OpError{Op: "write", Err: err}
		}
		if got := database.Classify(fmt.Errorf("renewing: %w", err)); got != database.Unknown || !got.Trouble() {
			t.Errorf("%v is %v, want unknown", err, got)
		}
	}
	for _, err := range []error{nil, errors.New("the handler's own"), io.ErrShortWrite} {
		if got := database.Classify(err); got != database.NotDatabase || got.Trouble() {
			t.Errorf("%v is %v, want none of the database's", err, got)
		}
	}
}

// A handler's own files and connections are no outage of the database.
func TestOutageIsTheDatabasesOnly(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "nowhere"))
	_, refused := net.DialTimeout("tcp", "127.0.0.1:1", time.Second)
	for _, err := range []error{nil, missing, refused, io.EOF, &url.Error{Op: "Get", URL: "https://x.example",
		Err: io.ErrUnexpectedEOF}, context.DeadlineExceeded, net.ErrClosed} {
		if database.Outage(fmt.Errorf("doing the job: %w", err)) {
			t.Errorf("%v is taken for the database's", err)
		}
	}
	down, _, err := database.OpenMySQL(&mysql.Config{Net: "tcp", Addr: "127.0.0.1:1", User: "x"},
		database.ConnectOptions{TimeZone: "+00:00"})
	if err != nil {
		t.Fatal(err)
	}
	defer down.Close()
	for _, err := range []error{down.PingContext(t.Context()), driver.ErrBadConn, mysql.ErrInvalidConn,
		&mysql.MySQLError{Number: 1213}, &pgconn.PgError{Code: "57P01"}} {
		if !database.Outage(fmt.Errorf("reading the settings: %w", err)) {
			t.Errorf("%v is the database's", err)
		}
	}
}

// Errors that the real databases give.
func TestClassifyRealErrors(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			if _, err := db.Exec("SELECT x FROM nowhere"); database.Classify(err) != database.Schema ||
				database.Outage(err) {
				t.Errorf("no such table: %v is %v", err, database.Classify(err))
			}
			db.MustExec("CREATE TABLE k (id INTEGER PRIMARY KEY, w VARCHAR(3))")
			db.MustExec("INSERT INTO k VALUES (1, 'a'), (2, 'b')")
			if _, err := db.Exec("INSERT INTO k VALUES (1, 'c')"); database.Classify(err) != database.Other ||
				!database.IsDuplicate(err) {
				t.Errorf("duplicate key: %v is %v", err, database.Classify(err))
			}
			if _, err := db.Exec("SELECT w FROM k WHERE absent = 1"); database.Classify(err) != database.Schema ||
				database.Outage(err) {
				t.Errorf("no such column: %v is %v", err, database.Classify(err))
			}
			if _, err := db.Exec("INSERT INTO k VALUES (3, 'too long')"); engine != jobstest.SQLite &&
				database.Classify(err) != database.JobsFault {
				t.Errorf("too long: %v is %v", err, database.Classify(err))
			}
		})
	}
}

// Two transactions that lock two rows crosswise: the database undoes one of
// them, and both are done in the end.
func TestADeadlockIsRetried(t *testing.T) {
	for _, engine := range []jobstest.Engine{jobstest.MariaDB, jobstest.MySQL, jobstest.PostgreSQL} {
		t.Run(string(engine), func(t *testing.T) {
			v := tablestest.Variant{Engine: engine, Layout: tables.Stock}
			db := v.Database(t)
			f := openFixture(t, v, db)
			r := f.MustEnqueue(tablestest.Job(`1`), tablestest.Job(`2`))
			var both sync.WaitGroup
			both.Add(2)
			var meet [2]sync.Once
			var group sync.WaitGroup
			runs := make([]int, 2)
			for i := range 2 {
				group.Go(func() {
					err := f.tables.InTx(context.Background(), "crosswise", func(x tables.Transaction) error {
						runs[i]++
						for step, id := range []int64{r[i].ID, r[1-i].ID} {
							if step == 1 { // each holds its first row now, at the first try
								meet[i].Do(func() { both.Done(); both.Wait() })
							}
							if _, err := f.tables.Exec(context.Background(), x.Main,
								"UPDATE jobs SET attempts = attempts + 1 WHERE id = ?", id); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if runs[0]+runs[1] < 3 {
				t.Errorf("no transaction was undone: the test shows nothing (%v)", runs)
			}
			if n := f.CountRows("SELECT SUM(attempts) FROM jobs"); n != 4 {
				t.Errorf("attempts add up to %d, want 4", n)
			}
		})
	}
}

// A handler's query that is cut off is the database's fault, whichever
// database it is; one that its own time-out ends is not.
func TestALostConnectionInAQueryIsAnOutage(t *testing.T) {
	const sleeping = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
	const mysql, postgres = "mysql://root@127.0.0.1:%d/mysql",
		"postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable"
	for _, c := range []struct {
		name, dsn   string
		port        int
		ever, there string
	}{
		{"mariadb", mysql, jobstest.Shared(t, jobstest.MariaDB).Port, "SELECT SLEEP(?)", sleeping},
		{"mysql", mysql, jobstest.Shared(t, jobstest.MySQL).Port, "SELECT SLEEP(?)", sleeping},
		{"postgres", postgres, jobstest.Shared(t, jobstest.PostgreSQL).Port, "SELECT pg_sleep($1)",
			"SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := jobstest.NewProxy(t, c.port)
			db, err := database.Connect(context.Background(), database.ConnectOptions{
				DSN: fmt.Sprintf(c.dsn, proxy.Port)})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			direct, err := database.Connect(context.Background(), database.ConnectOptions{
				DSN: fmt.Sprintf(c.dsn, c.port)})
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			cutOff := make(chan error, 1)
			go func() { _, err := db.Exec(c.ever, 60); cutOff <- err }()
			for n := 0; n == 0; {
				if err := direct.Get(&n, c.there); err != nil {
					t.Fatal(err)
				}
			}
			proxy.Cut()
			if err := <-cutOff; err == nil || !database.Outage(err) {
				t.Errorf("a query that was cut off: %v", err)
			}
			if err := db.PingContext(t.Context()); err != nil { // or the time would pass while it connects
				t.Fatal(err)
			}
			hurried, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, err := db.ExecContext(hurried, c.ever, 60); err == nil || database.Outage(err) {
				t.Errorf("a query past the handler's own time: %v", err)
			}
		})
	}
}

// A server with much to do may take seconds to greet: it is waited for longer than one
// that cannot be reached. PostgreSQL starts a process for each connection.
func TestAServerThatGreetsLateIsWaitedFor(t *testing.T) {
	proxy := jobstest.NewProxy(t, jobstest.Shared(t, jobstest.PostgreSQL).Port)
	proxy.Slow(1800 * time.Millisecond)
	db, err := database.Connect(t.Context(), database.ConnectOptions{
		DSN: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", proxy.Port)})
	if err != nil {
		t.Fatal(err)
	}
	proxy.Slow(0)
	db.Close()
}

func TestConnectSaysWhatToFix(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	maria, my, pg := jobstest.Shared(t, jobstest.MariaDB).Port, jobstest.Shared(t, jobstest.MySQL).Port,
		jobstest.Shared(t, jobstest.PostgreSQL).Port
	for _, c := range []struct{ name, dsn, want string }{
		{"nothing", "", "no database is configured"},
		{"nonsense", "hello", "none of mysql://"},
		{"mysql nobody", "mysql://root:s3cret@" + nobody + "/cms", "nobody listens"},
		{"mariadb login", fmt.Sprintf("mysql://nobody:s3cret@127.0.0.1:%d/cms", maria),
			"refuses the user or the password"},
		{"mariadb database", fmt.Sprintf("mysql://root@127.0.0.1:%d/nowhere", maria), "no such database"},
		{"mysql login", fmt.Sprintf("mysql://nobody:s3cret@127.0.0.1:%d/cms", my), "refuses the user or the password"},
		{"mysql database", fmt.Sprintf("mysql://root@127.0.0.1:%d/nowhere", my), "no such database"},
		{"mysql own form", fmt.Sprintf("root:s3cret@tcp(%s)/cms", nobody), "nobody listens"},
		{"bad escape", "mysql://root:s3cret%zz@localhost/cms", "special characters"},
		{"postgres nobody", "postgres://postgres:s3cret@" + nobody + "/cms", "nobody listens"},
		{"postgres database", fmt.Sprintf("postgres://postgres:s3cret@127.0.0.1:%d/nowhere?sslmode=disable", pg),
			"no such database"},
		{"sqlite folder", "sqlite:" + filepath.Join(t.TempDir(), "no", "cms.sqlite"), "check the path"},
		{"sqlite nothing", "sqlite:", "names no file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: c.dsn})
			if err == nil {
				db.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v: want %q and no password", err, c.want)
			}
		})
	}
}

func TestConnectSetsTheSession(t *testing.T) { jobstest.EachMySQL(t, testConnectSetsTheSession) }

func testConnectSetsTheSession(t *testing.T, engine jobstest.Engine) {
	db, err := database.Connect(context.Background(), database.ConnectOptions{
		DSN: fmt.Sprintf("mysql://root@127.0.0.1:%d/mysql", jobstest.Shared(t, engine).Port)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	isolation := map[jobstest.Engine]string{jobstest.MariaDB: "@@tx_isolation",
		jobstest.MySQL: "@@transaction_isolation"}[engine]
	var got string
	if err := db.Get(&got, "SELECT CONCAT_WS(' ', "+isolation+", @@time_zone, @@innodb_lock_wait_timeout, "+
		"@@character_set_client)"); err != nil || got != "READ-COMMITTED +00:00 3 utf8mb4" {
		t.Errorf("session is %q, %v", got, err)
	}
	lite, err := database.Connect(context.Background(), database.ConnectOptions{
		DSN: "sqlite:" + filepath.Join(t.TempDir(), "a.sqlite")})
	if err != nil {
		t.Fatal(err)
	}
	defer lite.Close()
	if err := lite.Get(&got, "PRAGMA journal_mode"); err != nil || got != "wal" {
		t.Errorf("journal mode %q, %v", got, err)
	}
}
