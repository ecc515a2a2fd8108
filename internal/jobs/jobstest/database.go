package jobstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver that DSNs of this package name

	"github.com/cmsjobs/cmsjobs/migrations"
)

// Engine names a database that the tests run on.
type Engine string

// The databases. MariaDB and MySQL are two: what one takes the other may refuse.
const (
	SQLite     Engine = "sqlite"
	MariaDB    Engine = "mariadb"
	MySQL      Engine = "mysql"
	PostgreSQL Engine = "postgres"
)

// Engines lists all of them: a test that concerns every database runs on each.
func Engines() []Engine { return []Engine{SQLite, MariaDB, MySQL, PostgreSQL} }

// MySQLs lists the engines that are reached by MySQL's protocol.
func MySQLs() []Engine { return []Engine{MariaDB, MySQL} }

// IsMySQL says whether the engine is reached by MySQL's protocol and speaks its SQL.
func (e Engine) IsMySQL() bool { return e == MariaDB || e == MySQL }

// EachMySQL runs a test on MariaDB and on MySQL, as sub-tests of their names.
func EachMySQL(t *testing.T, test func(t *testing.T, engine Engine)) {
	for _, engine := range MySQLs() {
		t.Run(string(engine), func(t *testing.T) { test(t, engine) })
	}
}

// Database is an empty database of one test's own.
type Database struct {
	*sqlx.DB
	Engine Engine
	Driver string // of database/sql: sqlite, mysql, pgx
	DSN    string // for another connection, or another process
}

// Open makes a new, empty database, which is dropped when the test ends.
func Open(t testing.TB, engine Engine) *Database {
	t.Helper()
	d := &Database{Engine: engine}
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:20]
	switch engine {
	case SQLite:
		d.Driver = "sqlite"
		d.DSN = SQLiteDSN(filepath.Join(t.TempDir(), "cms.sqlite"))
	case MariaDB, MySQL:
		port := Shared(t, engine).Port
		d.Driver, d.DSN = "mysql", MySQLDSN(port, name)
		// As Laravel's sites are; MySQL 5.7 and MariaDB's containers would make it latin1.
		set := " CHARACTER SET utf8mb4"
		if engine == MariaDB {
			set += " COLLATE utf8mb4_unicode_ci"
		}
		administer(t, "mysql", MySQLDSN(port, ""), "CREATE DATABASE "+name+set, "DROP DATABASE "+name)
	case PostgreSQL:
		port := Shared(t, engine).Port
		d.Driver, d.DSN = "pgx", PostgresDSN(port, name)
		administer(t, "pgx", PostgresDSN(port, "postgres"), "CREATE DATABASE "+name, "DROP DATABASE "+name+
			" WITH (FORCE)")
	default:
		t.Fatalf("no engine %q", engine)
	}
	db, err := sqlx.Open(d.Driver, d.DSN)
	if err != nil {
		t.Fatalf("opening %s: %v", engine, err)
	}
	d.DB = db
	t.Cleanup(func() { db.Close() })
	return d
}

// Root connects to a MariaDB or MySQL database as the server's root, for what the
// test's own account may not do, until the test ends.
func (d *Database) Root(t testing.TB) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(d.Driver, d.DSNOf(t, "root", ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// DSNOf is the DSN of a MariaDB or MySQL database for another account.
func (d *Database) DSNOf(t testing.TB, user, password string) string {
	t.Helper()
	c, err := mysql.ParseDSN(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd = user, password
	return c.FormatDSN()
}

// SQLiteDSN is the data source name of a SQLite file, with the settings that
// the service uses.
func SQLiteDSN(path string) string {
	return fmt.Sprintf(
		"file:%s?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
			"&_pragma=foreign_keys(1)", path)
}

// SQLiteFile is the file that a data source name of SQLite names.
func SQLiteFile(dsn string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
	return path
}

func administer(t testing.TB, driver, dsn, create, drop string) {
	t.Helper()
	run := func(statement string) error {
		db, err := sqlx.Open(driver, dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(statement)
		return err
	}
	if err := run(create); err != nil {
		t.Fatalf("%s: %v", create, err)
	}
	t.Cleanup(func() {
		if err := run(drop); err != nil {
			t.Logf("%s: %v", drop, err)
		}
	})
}

// Migrated is Open with our own tables (cmsjobs_*) made.
func Migrated(t testing.TB, engine Engine) *Database {
	t.Helper()
	d := Open(t, engine)
	if engine == SQLite { // it is not there before it is used
		content, err := migratedSQLite()
		if err == nil {
			err = os.WriteFile(SQLiteFile(d.DSN), content, 0o600)
		}
		if err != nil {
			t.Fatalf("making our tables on SQLite: %v", err)
		}
		return d
	}
	if err := migrations.Up(context.Background(), d.DB); err != nil {
		t.Fatalf("making our tables on %s: %v", engine, err)
	}
	return d
}

// migratedSQLite is a file with our tables, made once: under the race detector that takes
// longer than many a test.
var migratedSQLite = sync.OnceValues(func() (content []byte, err error) {
	dir, err := os.MkdirTemp("", "cmsjobs-sqlite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cms.sqlite")
	db, err := sqlx.Open("sqlite", SQLiteDSN(path))
	if err != nil {
		return nil, err
	}
	err = migrations.Up(context.Background(), db)
	if err = errors.Join(err, db.Close()); err != nil { // the last one to close brings the WAL into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// Numbers is a table of the numbers 1 to n (at most a million) for a FROM, with the
// one column seq, as every MySQL and MariaDB understands it.
func Numbers(n int) string {
	const digit = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
		" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	sum, from := "1", ""
	for place, name := 1, 'a'; place < n || from == ""; place, name = place*10, name+1 {
		sum += fmt.Sprintf(" + %d * %c.d", place, name)
		from += fmt.Sprintf(", %s %c", digit, name)
	}
	return fmt.Sprintf("(SELECT seq FROM (SELECT %s AS seq FROM %s) more WHERE seq <= %d) numbers", sum, from[2:], n)
}
