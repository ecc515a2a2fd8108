package dump

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func soak() bool { return os.Getenv("CMSJOBS_SOAK") == "1" }

// Money moves between two tables all the time; a dump that is one moment has
// all of it. Without the snapshot this test fails.
func TestADumpIsOneMoment(t *testing.T) { jobstest.EachMySQL(t, testADumpIsOneMoment) }

func testADumpIsOneMoment(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	db.MustExec("CREATE TABLE a_purse (id INT PRIMARY KEY, money INT)")
	db.MustExec("CREATE TABLE m_ballast (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
	db.MustExec("CREATE TABLE z_purse (id INT PRIMARY KEY, money INT)")
	db.MustExec("INSERT INTO a_purse VALUES (1, 100000)")
	db.MustExec("INSERT INTO z_purse VALUES (1, 0)")
	for range 200 {
		db.MustExec("INSERT INTO m_ballast (v) VALUES (REPEAT('x', 20000))")
	}
	ctx, stop := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	moved := make(chan struct{}, 1)
	moving.Go(func() {
		for ctx.Err() == nil {
			tx := db.MustBegin()
			tx.MustExec("UPDATE a_purse SET money = money - 1")
			tx.MustExec("UPDATE z_purse SET money = money + 1")
			if err := tx.Commit(); err != nil {
				t.Error(err)
				return
			}
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	})
	defer moving.Wait()
	defer stop()
	for range 3 {
		f := &files{}
		waited := false
		_, err := MySQL(t.Context(), db.DSN, Options{PieceSize: 10_000}, func(p Part, table string, sql []byte) error {
			if table == "m_ballast" && !waited { // money moves while the dump is between the purses
				waited = true
				for range 3 {
					<-moved
				}
			}
			return f.sink(p, table, sql)
		})
		if err != nil {
			t.Fatal(err)
		}
		to := jobstest.Open(t, engine)
		client(t, to, f.main.Bytes())
		var sum int
		if err := to.Get(&sum,
			"SELECT (SELECT SUM(money) FROM a_purse) + (SELECT SUM(money) FROM z_purse)"); err != nil ||
			sum != 100_000 {
			t.Errorf("the dump has %d of 100000, %v", sum, err)
		}
	}
}

// A table that is read already may be altered while others are still dumped.
func TestADumpedTableIsNotLocked(t *testing.T) { jobstest.EachMySQL(t, testADumpedTableIsNotLocked) }

func testADumpedTableIsNotLocked(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	for _, name := range []string{"a", "b", "c"} {
		db.MustExec("CREATE TABLE " + name + " (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
		for range 20 {
			db.MustExec("INSERT INTO " + name + " (v) VALUES (REPEAT('x', 20000))")
		}
	}
	altered := false
	_, err := MySQL(t.Context(), db.DSN, Options{PieceSize: 1000}, func(_ Part, table string, _ []byte) error {
		if table == "c" && !altered {
			altered = true
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := db.ExecContext(ctx, "ALTER TABLE a ADD COLUMN w INT")
			return err
		}
		return nil
	})
	if err != nil || !altered {
		t.Errorf("altered %v: %v", altered, err)
	}
}

func TestABrokenSinkOrContextEndsTheDump(t *testing.T) {
	jobstest.EachMySQL(t, testABrokenSinkOrContextEndsTheDump)
}

func testABrokenSinkOrContextEndsTheDump(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	db.MustExec("CREATE TABLE t (v TEXT)")
	for range 50 {
		db.MustExec("INSERT INTO t VALUES (REPEAT('x', 20000))")
	}
	broken := errors.New("full")
	if _, err := MySQL(t.Context(), db.DSN, Options{PieceSize: 1000}, func(Part, string, []byte) error {
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	if _, err := MySQL(ctx, db.DSN, Options{PieceSize: 1000}, func(Part, string, []byte) error {
		cancel(stop)
		return nil
	}); err == nil {
		t.Error("a cancelled dump succeeded")
	}
}

func TestTheServerDiesInTheMiddle(t *testing.T) { jobstest.EachMySQL(t, testTheServerDiesInTheMiddle) }

func testTheServerDiesInTheMiddle(t *testing.T, engine jobstest.Engine) {
	server := jobstest.Own(t, engine)
	dsn := jobstest.MySQLDSN(server.Port, "mysql")
	pool, _, err := Connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, statement := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (v LONGTEXT)",
		"INSERT INTO d.t SELECT REPEAT('x', 1000000) FROM mysql.help_topic LIMIT 40"} {
		if _, err := pool.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	killed := false
	_, err = MySQL(t.Context(), jobstest.MySQLDSN(server.Port, "d"), Options{}, func(Part, string, []byte) error {
		if !killed {
			killed = true
			_ = server.Kill() // says that it was killed
		}
		return nil
	})
	if err == nil {
		t.Error("a dump of a killed server succeeded")
	}
}

// Huge rows and many tables, restored by the plain client and by ours.
func TestSizes(t *testing.T) { jobstest.EachMySQL(t, testSizes) }

func testSizes(t *testing.T, engine jobstest.Engine) {
	tables, row := 50, 6<<20
	if soak() {
		tables, row = 5000, 64<<20
	}
	from := jobstest.Open(t, engine)
	for i := range tables {
		from.MustExec(fmt.Sprintf("CREATE TABLE t%d (id INT PRIMARY KEY)", i))
		from.MustExec(fmt.Sprintf("INSERT INTO t%d VALUES (%d)", i, i))
	}
	noise := make([]byte, row)
	rand.Read(noise)
	from.MustExec("CREATE TABLE huge (id INT PRIMARY KEY, v LONGBLOB, w LONGTEXT)")
	conn, _, err := Connect(from.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Exec("INSERT INTO huge VALUES (1, ?, ''), (2, '', NULL)", noise); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec("INSERT INTO huge VALUES (3, NULL, REPEAT('😀\\'', ?))", row/8); err != nil {
		t.Fatal(err)
	}
	f, summary := dumped(t, from, Options{})
	to := jobstest.Open(t, engine)
	client(t, to, f.main.Bytes())
	sameDatabase(t, from, to, summary)
	again := jobstest.Open(t, engine)
	reload(t, from, again, LoadOptions{})
	sameDatabase(t, from, again, summary)
}

// reload pipes a dump into a Loader.
func reload(t *testing.T, from, to *jobstest.Database, o LoadOptions) {
	t.Helper()
	l, err := NewLoader(t.Context(), to.DSN, o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = MySQL(t.Context(), from.DSN, Options{}, l.Load)
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTheLoaderRestoresTheTortureDatabase(t *testing.T) {
	jobstest.EachMySQL(t, testTheLoaderRestoresTheTortureDatabase)
}

func testTheLoaderRestoresTheTortureDatabase(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	from := load(t, engine, torture(engine))
	_, summary := dumped(t, from, Options{})
	for _, o := range []LoadOptions{{}, {Workers: 1, DropDefiners: true}} {
		to := jobstest.Open(t, engine)
		reload(t, from, to, o)
		sameDatabase(t, from, to, summary)
	}
}

func TestTheLoaderReportsABadDump(t *testing.T) { jobstest.EachMySQL(t, testTheLoaderReportsABadDump) }

func testTheLoaderReportsABadDump(t *testing.T, engine jobstest.Engine) {
	for sql, want := range map[string]string{
		"CREATE TABLE t (id INT PRIMARY KEY);\nINSERT INTO t VALUES (1),(1);\n": "restoring",
		"CREATE TABLE t (id INT":    "in the middle",
		"CREATE TABLE t (id HUNT);": "restoring",
	} {
		to := jobstest.Open(t, engine)
		l, err := NewLoader(t.Context(), to.DSN, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = l.Load(Main, "t", []byte(sql))
		if err = errors.Join(err, l.Close()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

// A GiB of rows needs no more memory than a few pieces.
func TestMemoryIsBounded(t *testing.T) { jobstest.EachMySQL(t, testMemoryIsBounded) }

func testMemoryIsBounded(t *testing.T, engine jobstest.Engine) {
	mib := 48
	if soak() {
		mib = 1024
	}
	db := jobstest.Open(t, engine)
	db.MustExec("CREATE TABLE big (id INT AUTO_INCREMENT PRIMARY KEY, v MEDIUMTEXT)")
	db.MustExec("INSERT INTO big (v) VALUES (REPEAT('0123456789abcdef', 16384))") // 256 KiB
	for n := 1; n < mib*4; n *= 2 {
		db.MustExec("INSERT INTO big (v) SELECT v FROM big")
	}
	var peak uint64
	var m runtime.MemStats
	runtime.GC()
	s, err := MySQL(t.Context(), db.DSN, Options{}, func(Part, string, []byte) error {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return nil
	})
	if err != nil || s.Bytes < int64(mib)<<20 {
		t.Fatalf("%d bytes, %v", s.Bytes, err)
	}
	t.Logf("%d MiB of SQL, heap at most %d MiB", s.Bytes>>20, peak>>20)
	if peak > 64<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}

func TestMysqldumpRestoresToo(t *testing.T) { jobstest.EachMySQL(t, testMysqldumpRestoresToo) }

// MariaDB's program, which Debian calls mysqldump, is not taken for a MySQL.
func TestAnotherMakersProgramIsRefused(t *testing.T) {
	if path, err := clientOf(t.Context(), true); err != nil {
		jobstest.Skip(t, "%v", err)
	} else if out, _ := exec.Command("mysqldump", "--version").Output(); !IsMariaDB(string(out)) {
		t.Skipf("mysqldump beside %s is MySQL's", path)
	}
	if path, err := clientOf(t.Context(), false); err == nil ||
		!strings.Contains(err.Error(), "of MySQL is not installed") {
		t.Errorf("%s, %v", path, err)
	}
}

func testMysqldumpRestoresToo(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	if engine == jobstest.MySQL {
		jobstest.PreferMySQLPrograms(t)
	}
	from := load(t, engine, torture(engine))
	_, summary := dumped(t, from, Options{})
	// MySQL's program writes no valid statement for rows without any stored column.
	left := map[jobstest.Engine]string{jobstest.MariaDB: "aria", jobstest.MySQL: "onlygenerated"}[engine]
	f := &files{}
	s, err := Mysqldump(t.Context(), from.DSN, Options{Empty: func(name string) bool { return name == "cache" },
		Exclude: func(name string) bool { return name == left }}, f.sink)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Tables) != len(summary.Tables)-1 || s.Rows != -1 {
		t.Errorf("%d tables, %d rows", len(s.Tables), s.Rows)
	}
	to := jobstest.Open(t, engine)
	client(t, to, f.all())
	_, is := dumped(t, to, Options{})
	for _, w := range is.Tables {
		if w.Name == left || w.Name == "cache" && w.Rows != 0 {
			t.Errorf("%+v", w)
		}
	}
	if len(is.Triggers) != len(summary.Triggers) || len(is.Routines) != 2 || len(is.Events) != 1 ||
		len(is.Views) != len(summary.Views) {
		t.Errorf("%v %v %v %v", is.Triggers, is.Routines, is.Events, is.Views)
	}
}

// The password must not be seen in the list of processes.
func TestTheOptionFileIsPrivateAndExact(t *testing.T) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = "u", `p"a\s#s ' é`, "tcp", "127.0.0.1:3307"
	name, err := optionFile(c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(name)
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	out, err := exec.Command("my_print_defaults", "--defaults-file="+name, "--show", "client").Output()
	if err != nil {
		t.Skip(err)
	}
	if !strings.Contains(string(out), "--password="+c.Passwd+"\n") || !strings.Contains(string(out), "--port=3307\n") {
		t.Errorf("the client reads %q", out)
	}
}

func TestSQLiteIsCopiedWhileInUse(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	db.MustExec("CREATE TABLE a (v TEXT); CREATE TABLE secret (v TEXT); CREATE TABLE cache (v TEXT)")
	db.MustExec("INSERT INTO a VALUES ('x'), (NULL), (''); INSERT INTO secret VALUES ('left out'); INSERT INTO cache " +
		"VALUES ('emptied')")
	f := &files{}
	s, err := SQLite(t.Context(), db.DSN, Options{Exclude: func(n string) bool { return n == "secret" },
		Empty: func(n string) bool { return n == "cache" }, PieceSize: 1000}, f.sink)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(f.main.String(), "left out") || strings.Contains(f.main.String(), "emptied") {
		t.Error("what was left out is in the file")
	}
	copied := filepath.Join(t.TempDir(), "c.sqlite")
	if err := os.WriteFile(copied, f.main.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	is, err := SQLiteSummary(t.Context(), copied)
	if err != nil || is.Schema != s.Schema || len(is.Tables) != 2 || is.Tables[0].Rows != 3 {
		t.Errorf("%+v, %v", is, err)
	}
	if err := os.Truncate(copied, int64(f.main.Len())-4096); err != nil {
		t.Fatal(err)
	}
	if _, err := SQLiteSummary(t.Context(), copied); err == nil {
		t.Error("a torn file is taken")
	}
}

func TestThrottle(t *testing.T) {
	var sum int
	start := time.Now()
	w := newWriter(t.Context(), Options{Throttle: 4 << 20, PieceSize: 1 << 20},
		func(_ Part, _ string, sql []byte) error { sum += len(sql); return nil })
	for range 5 {
		w.string(strings.Repeat("x", 700_000))
	}
	if err := w.close(); err != nil || sum != 3_500_000 {
		t.Errorf("%d bytes, %v", sum, err)
	}
	// However slow the machine, it cannot be faster than it may.
	if took, least := time.Since(start), time.Second*time.Duration(sum-burst)/(4<<20); took < least {
		t.Errorf("%d bytes took %s, less than %s", sum, took, least)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = newWriter(ctx, Options{Throttle: 1}, func(Part, string, []byte) error { return io.ErrShortWrite })
	w.string(strings.Repeat("x", 5_000_000)) // would take two months
	_ = w.close()
}
