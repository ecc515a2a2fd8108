package jobstest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver that DSNs of this package name

	"github.com/cmsjobs/cmsjobs/migrations"
)

// Engine names a database that the tests run on.
type Engine string

// The three databases.
const (
	SQLite     Engine = "sqlite"
	MySQL      Engine = "mysql"
	PostgreSQL Engine = "postgres"
)

// Engines lists all three.
func Engines() []Engine { return []Engine{SQLite, MySQL, PostgreSQL} }

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
	case MySQL:
		port := MariaDB(t).Port
		d.Driver, d.DSN = "mysql", MariaDBDSN(port, name)
		administer(t, "mysql", MariaDBDSN(port, ""), "CREATE DATABASE "+name, "DROP DATABASE "+name)
	case PostgreSQL:
		port := Postgres(t).Port
		d.Driver, d.DSN = "pgx", PostgresDSN(port, name)
		administer(t, "pgx", PostgresDSN(port, "postgres"), "CREATE DATABASE "+name, "DROP DATABASE "+name+" WITH (FORCE)")
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

// SQLiteDSN is the data source name of a SQLite file, with the settings that
// the service uses.
func SQLiteDSN(path string) string {
	return fmt.Sprintf("file:%s?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)", path)
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
	if err := migrations.Up(context.Background(), d.DB.DB, d.Driver); err != nil {
		t.Fatalf("making our tables on %s: %v", engine, err)
	}
	return d
}
