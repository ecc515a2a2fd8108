package jobstest

import (
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"
)

// SiteRights are those that docs/install.md grants an account of the service's own
// on the CMS's database.
const SiteRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, SHOW VIEW, TRIGGER, EVENT"

// accountVariable names the account that tests use on shared MariaDB and MySQL
// servers: as hosting companies give it, with all rights on the tests' databases
// (whose fixtures have views and routines) and none on the server. It is made
// where it is missing. Without the variable tests are root.
const accountVariable = "CMSJOBS_TEST_ACCOUNT"

// accountServers are the ports of the servers that have the account.
var accountServers sync.Map

// makeAccount makes the account of CMSJOBS_TEST_ACCOUNT on a shared server.
func makeAccount(t testing.TB, s *Server) {
	t.Helper()
	name := os.Getenv(accountVariable)
	if name == "" || name == "root" {
		return
	}
	ready, _ := accountServers.LoadOrStore(s.Port, sync.OnceValue(func() error { return grantAccount(s, name) }))
	if err := ready.(func() error)(); err != nil {
		t.Fatalf("making the account %s: %v", name, err)
	}
}

func grantAccount(s *Server, name string) error {
	db, err := sql.Open("mysql", s.MySQLDSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range []string{
		"CREATE USER IF NOT EXISTS %s@'%%'",
		"GRANT ALL ON `t\\_%%`.* TO %s@'%%'",
		"GRANT ALL ON `cmsjobs\\_verify\\_%%`.* TO %s@'%%'",
	} {
		if _, err := db.Exec(fmt.Sprintf(statement, name)); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
