package jobs_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// F11: TiDB accepts SKIP LOCKED and takes no lock. All processes together run each job
// once: no claim trusts a lock. The one test that is skipped
// in CI too where its server is not there: TiDB is in no package, and half an
// hour of building (internal/jobs/jobstest/tidb.sh). At full size MySQL does the same
// work beside it, and the log has the jobs a second of both.
func TestEachJobRunsOnceOnTiDB(t *testing.T) {
	program, err := exec.LookPath("tidb-server")
	if err != nil {
		t.Skip("no tidb-server: internal/jobs/jobstest/tidb.sh builds it")
	}
	t.Run("TiDB", func(t *testing.T) {
		l := newLabOn(t, startTiDB(t, program))
		eachOnceInManyProcesses(t, l)
		sortsNothing(t, l)
	})
	if soak() {
		t.Run("MySQL beside", func(t *testing.T) { eachOnceInManyProcesses(t, newLab(t, jobstest.MySQL)) })
	}
}

func eachOnceInManyProcesses(t *testing.T, l *lab) {
	t.Helper()
	l.config.Lease = 10 * time.Minute // no fault, not even that of a busy machine
	// Without the index TiDB sorts the queue for each claim.
	if err := l.store.AddIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.eachOnce(size(4, 16), size(2000, 20_000), time.Duration(size(5, 60))*time.Minute)
}

// sortsNothing holds that the offered index, which names the key, gives TiDB the rows in
// the order of a claim: with one that does not, it reads all rows of the queue.
func sortsNothing(t *testing.T, l *lab) {
	t.Helper()
	var plan []struct {
		Step string `db:"id"`
	}
	if err := l.db.Unsafe().Select(&plan, "EXPLAIN SELECT id, payload FROM jobs FORCE INDEX (cmsjobs_jobs_due) WHERE "+
		"queue = 'default' AND available_at >= 1 ORDER BY available_at, id LIMIT 12"); err != nil {
		t.Fatal(err)
	}
	for _, p := range plan {
		if strings.Contains(p.Step, "TopN") || strings.Contains(p.Step, "Sort") {
			t.Errorf("TiDB sorts the rows of a queue: %+v", plan)
		}
	}
	if len(plan) == 0 {
		t.Error("there is no plan")
	}
}

// startTiDB starts a server that keeps its data in itself (unistore).
func startTiDB(t *testing.T, program string) *jobstest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	cmd := exec.Command(program, "-store", "unistore", "-path", filepath.Join(dir, "data"), "-host", "127.0.0.1", "-P",
		strconv.Itoa(port),
		"-report-status=false", "-socket", filepath.Join(dir, "s"), "-temp-dir", filepath.Join(dir, "tmp"),
		"-log-file", log, "-L", "warn")
	cmd.Dir = dir // for its log of slow statements
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // with what Kill made of it
	})
	server := &jobstest.Server{Port: port}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		db, err := sqlx.Connect("mysql", server.MySQLDSN(""))
		if err == nil {
			db.Close()
			return server
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log) // what there is of it
			t.Fatalf("TiDB does not answer: %v\n%s", err, text)
		}
	}
}
