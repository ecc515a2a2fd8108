package jobstest

import (
	"database/sql"
	"fmt"
	"testing"
)

// NeedVersion skips a test of what an older server does not have, where the environment
// names such a server; why says what that is. No server that the tests start
// themselves is older.
func NeedVersion(t testing.TB, engine Engine, major, minor int, why string) {
	t.Helper()
	server := Shared(t, engine)
	driver, dsn, query := "mysql", server.MySQLDSN(""), "SELECT VERSION()"
	if engine == PostgreSQL {
		driver, dsn, query = "pgx", PostgresDSN(server.Port, "postgres"), "SHOW server_version"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var text string
	if err := db.QueryRow(query).Scan(&text); err != nil {
		t.Fatalf("the version of %s: %v", engine, err)
	}
	var is, least int
	if _, err := fmt.Sscanf(text, "%d.%d", &is, &least); err != nil {
		t.Fatalf("the version of %s is %q: %v", engine, text, err)
	}
	if is < major || is == major && least < minor {
		t.Skipf("%s %s: %s", engine, text, why)
	}
}

// WritesBinaryLog says whether the shared MariaDB or MySQL server has a binary log: those
// that the tests start themselves have none, MySQL as it ships has.
func WritesBinaryLog(t testing.TB, engine Engine) (on bool) {
	t.Helper()
	db, err := sql.Open("mysql", Shared(t, engine).MySQLDSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT @@log_bin").Scan(&on); err != nil {
		t.Fatalf("asking %s for its binary log: %v", engine, err)
	}
	return on
}

// NeedTorture skips a test of the torture database on a server that does not know its types.
func NeedTorture(t testing.TB, engine Engine) {
	t.Helper()
	switch engine {
	case MariaDB:
		NeedVersion(t, engine, 10, 10, "the torture database has columns of UUID and INET4")
	case MySQL:
		NeedVersion(t, engine, 8, 0, "the torture database has expressions as defaults and in indexes")
	}
}
