package jobstest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// pgbouncerConf is a pooler whose connections are given to one transaction each.
const pgbouncerConf = `[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
`

// PgBouncer starts a pooler of the test's own, in transaction mode, in front of a
// PostgreSQL server of ours.
func PgBouncer(t testing.TB, server int) *Server {
	t.Helper()
	daemon, err := program("pgbouncer")
	if err != nil {
		Skip(t, "pgbouncer: %v", err)
	}
	owner, err := account("postgres") // it refuses to run as root
	if err != nil {
		t.Fatal(err)
	}
	dir, err := privateDir("pgbouncer", owner)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Dir: dir, owner: owner}
	if s.Port, err = freePort(); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(conf, fmt.Appendf(nil, pgbouncerConf, server, s.Port), 0o644); err != nil {
		t.Fatal(err)
	}
	s.args = []string{daemon, conf}
	s.ready = s.accepts
	t.Cleanup(s.Stop)
	if err := s.Start(); err != nil {
		t.Fatalf("starting pgbouncer: %v", err)
	}
	return s
}
