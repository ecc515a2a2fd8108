package jobstest

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that DSNs of this package name
)

var sharedPostgres once

// OwnPostgres starts a server of the test's own; options are added to its command line.
func OwnPostgres(t testing.TB, options ...string) *Server {
	t.Helper()
	return own(t, PostgreSQL, func() (*Server, error) { return NewPostgres(options...) })
}

// NewPostgres prepares a PostgreSQL server of the caller's own; Start starts it.
// options are added to its command line.
func NewPostgres(options ...string) (*Server, error) {
	daemon, err := program("postgres")
	if err != nil {
		return nil, err
	}
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	owner, err := account("postgres")
	if err != nil {
		return nil, err
	}
	dir, err := privateDir("postgres", owner)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	install := exec.Command(initdb, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
		"--no-sync", "--pgdata="+data)
	runAs(install, owner, false)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("preparing PostgreSQL's folder: %w\n%s", err, tail(out))
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Dir: dir, owner: owner}
	s.args = append([]string{daemon, "-D", data, "-p", fmt.Sprint(port), "-k", dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "max_connections=300"}, options...)
	s.gone = func() { awaitNobodyIn(data) }
	s.ready = func() error {
		db, err := sql.Open("pgx", PostgresDSN(port, "postgres"))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	}
	return s, nil
}

// awaitNobodyIn waits until no process works in a folder: those of a killed server end by
// themselves a moment later, and hold its shared memory until then. It knows Linux only.
func awaitNobodyIn(dir string) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		links, _ := filepath.Glob("/proc/[0-9]*/cwd")
		if !slices.ContainsFunc(links, func(link string) bool {
			at, err := os.Readlink(link)
			return err == nil && at == dir
		}) {
			return
		}
	}
}

// PostgresDSN is the data source name of a database on a server of ours.
func PostgresDSN(port int, database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", port, database)
}

// SkipFirstDelete has PostgreSQL delete nothing, without an error, where a row of the
// table is deleted for the first time.
func SkipFirstDelete(t testing.TB, db *Database, table string) {
	t.Helper()
	db.MustExec("CREATE SEQUENCE deletes")
	db.MustExec("CREATE FUNCTION skip_first() RETURNS trigger LANGUAGE plpgsql AS " +
		"$$ BEGIN IF nextval('deletes') = 1 THEN RETURN NULL; END IF; RETURN OLD; END $$")
	db.MustExec("CREATE TRIGGER skip_first BEFORE DELETE ON " + table + " FOR EACH ROW EXECUTE FUNCTION skip_first()")
}
