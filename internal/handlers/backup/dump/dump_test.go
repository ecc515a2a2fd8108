package dump

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// client runs the server's own plain client on SQL.
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
	program := "mariadb"
	if db.Engine == jobstest.MySQL {
		if program, err = jobstest.MySQLProgram("mysql"); err != nil {
			jobstest.Skip(t, "%v", err)
		}
	}
	cmd := exec.Command(program, "--no-defaults", "--default-character-set=utf8mb4", "--max-allowed-packet=256M", "-h",
		host, "-P", port, "-u", c.User, c.DBName)
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

// torture is a database with everything that is hard to dump of an engine.
func torture(engine jobstest.Engine) string { return "testdata/torture." + string(engine) + ".sql" }

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

func load(t testing.TB, engine jobstest.Engine, name string) *jobstest.Database {
	t.Helper()
	if strings.Contains(name, "torture") {
		jobstest.NeedTorture(t, engine)
	}
	sql, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	db := jobstest.Open(t, engine)
	client(t, db, sql)
	return db
}

// sameDatabase compares CHECKSUM TABLE, our own checksums and every CREATE.
func sameDatabase(t *testing.T, from, to *jobstest.Database, was Summary) {
	t.Helper()
	_, is := dumped(t, to, Options{})
	if was.Schema != is.Schema {
		t.Errorf("the schemas differ: %q", Differences(was, is))
	}
	if len(was.Tables) != len(is.Tables) {
		t.Fatalf("%d tables became %d", len(was.Tables), len(is.Tables))
	}
	for i, w := range was.Tables {
		g := is.Tables[i]
		if w.Name != g.Name || w.Rows != g.Rows || w.Checksum != g.Checksum {
			t.Errorf("table %+v became %+v", w, g)
		}
		a, b := checksum(t, from, w.Name), checksum(t, to, w.Name)
		// MySQL's own sum of a JSON value is of how it lies on the disk
		if a != b && !(from.Engine == jobstest.MySQL && holdsJSON(was, w.Name)) {
			t.Errorf("CHECKSUM TABLE %s is %s, was %s", w.Name, b, a)
		}
		if a, b := showCreate(t, from, w.Name), showCreate(t, to, w.Name); a != b {
			t.Errorf("%s became %s", a, b)
		}
	}
	for _, lists := range [][2][]string{{was.Views, is.Views}, {was.Routines, is.Routines},
		{was.Triggers, is.Triggers}, {was.Events, is.Events}, {was.Sequences, is.Sequences}} {
		if !slices.Equal(lists[0], lists[1]) {
			t.Errorf("%v became %v", lists[0], lists[1])
		}
	}
}

func holdsJSON(s Summary, table string) bool {
	return slices.ContainsFunc(s.Objects, func(o Object) bool {
		return o.Name == table && o.holdsJSON()
	})
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

// statedCharset is what MySQL 8 writes beside a column's collation once the table
// was made by a statement that names the collation.
var statedCharset = regexp.MustCompile(` CHARACTER SET \w+( COLLATE )`)

func showCreate(t *testing.T, db *jobstest.Database, table string) string {
	t.Helper()
	var name, create string
	if err := db.QueryRow("SHOW CREATE TABLE "+quoteName(table)).Scan(&name, &create); err != nil {
		t.Fatal(err)
	}
	create = statedCharset.ReplaceAllString(create, "$1")
	own := quoteName(strings.Split(strings.Split(db.DSN, "/")[1], "?")[0])
	return strings.ReplaceAll(create, own+".", "")
}

func TestATortureDatabaseRestoresWithThePlainClient(t *testing.T) {
	jobstest.EachMySQL(t, testATortureDatabaseRestoresWithThePlainClient)
}

func testATortureDatabaseRestoresWithThePlainClient(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	from := load(t, engine, torture(engine))
	for _, size := range []int{0, 100} { // tiny pieces cut rows in the middle
		f, summary := dumped(t, from, Options{PieceSize: size})
		if bytes.Contains(f.main.Bytes(), []byte("\nDELIMITER")) {
			t.Error("the main file needs DELIMITER")
		}
		if !bytes.HasSuffix(f.main.Bytes(), []byte(EndMark+"\n")) ||
			!bytes.HasSuffix(f.extra.Bytes(), []byte(EndMark+"\n")) {
			t.Error("a file has no end mark")
		}
		to := jobstest.Open(t, engine)
		client(t, to, f.main.Bytes())
		client(t, to, f.extra.Bytes())
		sameDatabase(t, from, to, summary)
		if engine != jobstest.MariaDB {
			continue // has no sequences
		}
		var next int64
		if err := to.Get(&next, "SELECT next_not_cached_value FROM invoice"); err != nil || next != 150 {
			t.Errorf("the sequence goes on at %d, %v", next, err)
		}
	}
}

func TestARealCMSRestores(t *testing.T) { jobstest.EachMySQL(t, testARealCMSRestores) }

func testARealCMSRestores(t *testing.T, engine jobstest.Engine) {
	for _, name := range []string{"database.sql", "database-core-7.6.8.sql"} {
		from := load(t, engine, jobstest.Fixture(t, name))
		f, summary := dumped(t, from, Options{})
		if f.extra.Len() > 0 {
			t.Errorf("%s needs a second file:\n%s", name, f.extra.String())
		}
		to := jobstest.Open(t, engine)
		client(t, to, f.main.Bytes())
		sameDatabase(t, from, to, summary)
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) { jobstest.EachMySQL(t, testOnlyWhatIsAskedFor) }

func testOnlyWhatIsAskedFor(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	from := load(t, engine, torture(engine))
	f, summary := dumped(t, from, Options{
		Exclude: func(name string) bool { return name == "log" },
		Empty:   func(name string) bool { return name == "cache" },
	})
	text := f.main.String()
	if strings.Contains(text, "CREATE TABLE `log`") || strings.Contains(text, "INSERT INTO `cache`") ||
		!strings.Contains(text, "CREATE TABLE `cache`") {
		t.Error("log is there, or cache has rows or is missing")
	}
	// Aria, MyISAM; MyISAM, JSON
	if want := map[jobstest.Engine]int{jobstest.MariaDB: 2, jobstest.MySQL: 1 + 1}[engine]; len(
		summary.Warnings) != want {
		t.Errorf("the tables without snapshots are named: %q", summary.Warnings)
	}
	f, summary = dumped(t, from, Options{Tables: []string{"child", "parent"}})
	if len(summary.Tables) != 2 || !slices.Contains(summary.Triggers, "before_child") || len(summary.Routines) != 0 ||
		strings.Contains(f.main.String(), "CREATE TABLE `types`") {
		t.Errorf("two tables are %+v", summary)
	}
}

// What a dump holds, restored and dumped again, is the same dump, also of what
// Laravel's own migrations make: tables whose collation is not their charset's default.
func TestADumpOfADumpIsTheSame(t *testing.T) { jobstest.EachMySQL(t, testADumpOfADumpIsTheSame) }

func testADumpOfADumpIsTheSame(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	for name, from := range map[string]*jobstest.Database{"Laravel's tables": laravel(t, engine),
		"torture": load(t, engine, torture(engine))} {
		f, was := dumped(t, from, Options{})
		first := jobstest.Open(t, engine)
		client(t, first, f.all())
		_, is := dumped(t, first, Options{})
		if d := Differences(was, is); len(d) > 0 || was.Schema != is.Schema {
			t.Errorf("%s: %q", name, d)
		}
		again, _ := dumped(t, first, Options{})
		second := jobstest.Open(t, engine)
		client(t, second, again.all())
		last, _ := dumped(t, second, Options{})
		if a, b := afterHeader(again.all()), afterHeader(last.all()); a != b {
			t.Errorf("%s: the dump of a restored dump, restored and dumped, became another", name)
		}
	}
}

// laravel is a database that Laravel's own migrations made.
func laravel(t *testing.T, engine jobstest.Engine) *jobstest.Database {
	t.Helper()
	db := jobstest.Open(t, engine)
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "apt-get install php-laravel-framework php-mysql: %v", err)
	}
	c, err := mysql.ParseDSN(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(c.Addr, ":")
	cmd := exec.CommandContext(t.Context(), "php", "testdata/laravel.php")
	cmd.Env = append(os.Environ(), "DB_PORT="+port, "DB_DATABASE="+c.DBName)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return db
}

// afterHeader leaves out what names the database and the moment.
func afterHeader(dump []byte) string {
	lines := strings.Split(string(dump), "\n")
	return strings.Join(
		slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "-- cmsjobs dump of ") }), "\n")
}
