//go:build unix

package php_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Kills of the service, of PHP and of the database server, and cuts of the network, each in
// turn while jobs run: none is lost, and only one whose PHP was killed in it runs twice. With
// CMSJOBS_SOAK=1 (make heavy) 5,000 jobs on each server, else 300 on one.
func TestKillMatrix(t *testing.T) {
	n, faults, engines := 300, 8, jobstest.MySQLs()[:1]
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		n, faults, engines = 5000, 80, jobstest.MySQLs()
	}
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) { testKillMatrix(t, engine, n, faults) })
	}
}

func testKillMatrix(t *testing.T, engine jobstest.Engine, n, faults int) {
	needLaravel(t)
	server := jobstest.Own(t, engine)
	if _, err := server.RootMySQL(t).Exec("CREATE DATABASE matrix"); err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, &jobstest.Database{Engine: engine, DSN: server.MySQLDSN("matrix")}, killLease)
	s.run("push-bulk", "default", "mark", strconv.Itoa(n))
	proxy := jobstest.NewProxy(t, server.Port) // the service and PHP go through it, this test does not
	s.db.DSN = strings.Replace(s.db.DSN, ":"+strconv.Itoa(server.Port)+")", ":"+strconv.Itoa(proxy.Port)+")", 1)
	s.env = append(s.env, "DB_PORT="+strconv.Itoa(proxy.Port))
	x := s.service("50")
	var killed []int // processes of PHP
	for k := range faults {
		s.await("some jobs more have run", 2*time.Minute, func() bool {
			return len(s.marks()) >= (k+1)*n/(faults+1)
		})
		switch k % 4 {
		case 0:
			x.kill()
			x = s.service("50")
		case 1:
			marks := s.marks()
			last := marks[len(marks)-1]
			_ = syscall.Kill(last.pid, syscall.SIGKILL) // killed before
			killed = append(killed, last.pid)
		case 2:
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		case 3:
			proxy.Refuse(true)
			proxy.Cut()
			time.Sleep(300 * time.Millisecond) // the length of the trouble
			proxy.Refuse(false)
		}
	}
	s.drained("default", 3*time.Minute)
	runs := map[int][]int{} // the processes that ran each job, in their order
	for _, m := range s.marks() {
		runs[m.n] = append(runs[m.n], m.pid)
	}
	for job := 1; job <= n; job++ {
		pids := runs[job]
		if len(pids) == 0 {
			t.Errorf("job %d is lost", job)
			continue
		}
		for _, pid := range pids[:len(pids)-1] {
			if !slices.Contains(killed, pid) {
				t.Errorf("job %d ran %d times, and its process %d was not killed", job, len(pids), pid)
			}
		}
	}
	if failed, all := s.count("failed_jobs"), len(s.marks()); failed > 0 || all > n+len(killed) {
		t.Errorf("%d runs of %d jobs, %d kills of PHP, %d failed", all, n, len(killed), failed)
	}
	t.Logf("%d jobs, %d runs, %d faults, %d of them kills of PHP", n, len(s.marks()), faults, len(killed))
}

type mark struct{ n, pid int }

// marks are the runs of jobs, in their order: a file, as the database is away at times.
func (s *site) marks() (list []mark) {
	text, _ := os.ReadFile(filepath.Join(s.dir, "marks")) // not there yet
	for line := range strings.Lines(string(text)) {
		n, pid, whole := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !whole || !strings.HasSuffix(line, "\n") {
			continue
		}
		var m mark
		m.n, _ = strconv.Atoi(n)
		m.pid, _ = strconv.Atoi(pid)
		list = append(list, m)
	}
	return list
}
