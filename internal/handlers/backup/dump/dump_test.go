package dump

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// client runs the plain mariadb client on SQL.
func client(t testing.TB, db *jobstest.Database, sql []byte) {
	t.Helper()
	if out, err := tryClient(t, db, sql); err != nil {
		t.Fatalf("the plain client: %v\n%s", err, out)
	}
}

func tryClient(t testing.TB, db *jobstest.Database, sql []byte) (string, error) {
	t.Helper()
	c, err := mysql.ParseDSN(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	cmd := exec.Command("mariadb", "--no-defaults", "--default-character-set=utf8mb4", "--max-allowed-packet=256M", "-h", host, "-P", port, "-u", c.User, c.DBName)
	if c.Passwd != "" {
		cmd.Env = append(os.Environ(), "MYSQL_PWD="+c.Passwd)
	}
	cmd.Stdin = bytes.NewReader(sql)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// files is a Sink that keeps both files.
type files struct{ main, extra bytes.Buffer }

func (f *files) sink(part Part, _ string, sql []byte) error {
	if part == Main {
		f.main.Write(sql)
	} else {
		f.extra.Write(sql)
	}
	return nil
}

func (f *files) all() []byte { return append(slices.Clone(f.main.Bytes()), f.extra.Bytes()...) }

func dumped(t testing.TB, db *jobstest.Database, o Options) (*files, Summary) {
	t.Helper()
	f := &files{}
	s, err := MySQL(t.Context(), db.DSN, o, f.sink)
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

func load(t testing.TB, name string) *jobstest.Database {
	t.Helper()
	sql, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	db := jobstest.Open(t, jobstest.MariaDB)
	client(t, db, sql)
	return db
}

// sameDatabase compares CHECKSUM TABLE, our own checksums and every CREATE.
func sameDatabase(t *testing.T, from, to *jobstest.Database, was Summary) {
	t.Helper()
	_, is := dumped(t, to, Options{})
	if was.Schema != is.Schema {
		t.Error("the schemas differ")
	}
	if len(was.Tables) != len(is.Tables) {
		t.Fatalf("%d tables became %d", len(was.Tables), len(is.Tables))
	}
	for i, w := range was.Tables {
		g := is.Tables[i]
		if w.Name != g.Name || w.Rows != g.Rows || w.Checksum != g.Checksum {
			t.Errorf("table %+v became %+v", w, g)
		}
		if a, b := checksum(t, from, w.Name), checksum(t, to, w.Name); a != b {
			t.Errorf("CHECKSUM TABLE %s is %s, was %s", w.Name, b, a)
		}
		if a, b := showCreate(t, from, w.Name), showCreate(t, to, w.Name); a != b {
			t.Errorf("%s became %s", a, b)
		}
	}
	for _, lists := range [][2][]string{{was.Views, is.Views}, {was.Routines, is.Routines}, {was.Triggers, is.Triggers}, {was.Events, is.Events}, {was.Sequences, is.Sequences}} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%v became %v", lists[0], lists[1])
		}
	}
}

func checksum(t *testing.T, db *jobstest.Database, table string) string {
	t.Helper()
	var name string
	var sum *string
	if err := db.QueryRow("CHECKSUM TABLE "+quoteName(table)).Scan(&name, &sum); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(sum != nil && *sum != "", *sum)
}

func showCreate(t *testing.T, db *jobstest.Database, table string) string {
	t.Helper()
	var name, create string
	if err := db.QueryRow("SHOW CREATE TABLE "+quoteName(table)).Scan(&name, &create); err != nil {
		t.Fatal(err)
	}
	own := quoteName(strings.Split(strings.Split(db.DSN, "/")[1], "?")[0])
	return strings.ReplaceAll(create, own+".", "")
}

func TestATortureDatabaseRestoresWithThePlainClient(t *testing.T) {
	from := load(t, "testdata/torture.sql")
	for _, size := range []int{0, 100} { // tiny pieces cut rows in the middle
		f, summary := dumped(t, from, Options{PieceSize: size})
		if bytes.Contains(f.main.Bytes(), []byte("\nDELIMITER")) {
			t.Error("the main file needs DELIMITER")
		}
		if !bytes.HasSuffix(f.main.Bytes(), []byte(EndMark+"\n")) || !bytes.HasSuffix(f.extra.Bytes(), []byte(EndMark+"\n")) {
			t.Error("a file has no end mark")
		}
		to := jobstest.Open(t, jobstest.MariaDB)
		client(t, to, f.main.Bytes())
		client(t, to, f.extra.Bytes())
		sameDatabase(t, from, to, summary)
		var next int64
		if err := to.Get(&next, "SELECT next_not_cached_value FROM invoice"); err != nil || next != 150 {
			t.Errorf("the sequence goes on at %d, %v", next, err)
		}
	}
}

func TestARealCMSRestores(t *testing.T) {
	for _, name := range []string{"database.sql", "database-core-7.6.8.sql"} {
		from := load(t, jobstest.Fixture(t, name))
		f, summary := dumped(t, from, Options{})
		if f.extra.Len() > 0 {
			t.Errorf("%s needs a second file:\n%s", name, f.extra.String())
		}
		to := jobstest.Open(t, jobstest.MariaDB)
		client(t, to, f.main.Bytes())
		sameDatabase(t, from, to, summary)
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	from := load(t, "testdata/torture.sql")
	f, summary := dumped(t, from, Options{
		Exclude: func(name string) bool { return name == "log" },
		Empty:   func(name string) bool { return name == "cache" },
	})
	text := f.main.String()
	if strings.Contains(text, "CREATE TABLE `log`") || strings.Contains(text, "INSERT INTO `cache`") || !strings.Contains(text, "CREATE TABLE `cache`") {
		t.Error("log is there, or cache has rows or is missing")
	}
	if len(summary.Warnings) != 2 {
		t.Errorf("the tables without snapshots are named: %q", summary.Warnings)
	}
	f, summary = dumped(t, from, Options{Tables: []string{"child", "parent"}})
	if len(summary.Tables) != 2 || !slices.Equal(summary.Triggers, []string{"before_child"}) || len(summary.Routines) != 0 || strings.Contains(f.main.String(), "CREATE TABLE `types`") {
		t.Errorf("two tables are %+v", summary)
	}
}
