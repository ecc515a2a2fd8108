//go:build unix

package php_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// service is a pool in a separate process.
type service struct {
	*site
	log *jobstest.Log
	cmd *exec.Cmd
}

func (s *site) service(tries string) *service {
	s.t.Helper()
	command, err := json.Marshal(s.artisan("queue:work", "database", "--name=cmsjobs", "--queue=default", "--sleep=0",
		"--tries="+tries, "--quiet"))
	if err != nil {
		s.t.Fatal(err)
	}
	x := &service{site: s, log: new(jobstest.Log), cmd: exec.Command(os.Args[0])}
	x.cmd.Env = append(os.Environ(), "CHILD=pool", "CHILD_DSN="+s.db.DSN, "CHILD_DIR="+s.dir, "CHILD_COMMAND="+
		string(command))
	x.cmd.Stderr = x.log
	if err := x.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		x.kill()
		if s.t.Failed() {
			s.t.Log(x.log)
		}
	})
	return x
}

// kill ends the service as the kernel does that is out of memory; its PHP lives.
func (x *service) kill() {
	_ = x.cmd.Process.Kill() // killed before
	_ = x.cmd.Wait()
}

func (s *site) ran() int { return s.count("(SELECT DISTINCT n FROM effects) e") }

// The service is killed, again and again, while PHP works: each job runs once, and with
// one try none is failed for an attempt that it never had.
func TestKillsOfTheServiceLoseNothingAndRepeatNothing(t *testing.T) {
	jobstest.EachMySQL(t, testKillsOfTheServiceLoseNothingAndRepeatNothing)
}

func testKillsOfTheServiceLoseNothingAndRepeatNothing(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, killLease)
	const n, kills = 200, 4
	s.run("push-many", "default", "effect", "0", "200")
	x := s.service("1")
	for k := range kills {
		s.await("some jobs more have run", time.Minute, func() bool { return s.ran() >= min((k+1)*n/(kills+2), n) })
		x.kill()
		x = s.service("1")
	}
	s.drained("default", 3*time.Minute)
	var runs []int
	if err := s.db.Select(&runs, "SELECT n FROM effects ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	if once := slices.Compact(slices.Clone(runs)); len(once) != n || len(runs) != n {
		t.Errorf("%d runs of %d jobs, want %d", len(runs), len(once), n)
	}
	if failed := s.count("failed_jobs"); failed != 0 {
		t.Errorf("%d jobs are in failed_jobs", failed)
	}
}

// Killed PHP processes repeat only the job that they were in.
func TestKillsOfPHPRepeatOnlyTheJobInHand(t *testing.T) {
	jobstest.EachMySQL(t, testKillsOfPHPRepeatOnlyTheJobInHand)
}

func testKillsOfPHPRepeatOnlyTheJobInHand(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, killLease)
	const n, kills = 200, 5
	s.run("push-many", "default", "effect", "0", "200")
	s.service("20")
	var killed []int
	for k := range kills {
		s.await("some jobs more have run", time.Minute, func() bool { return s.ran() >= min((k+1)*n/(kills+2), n) })
		var pid int
		if err := s.db.Get(&pid, "SELECT pid FROM effects ORDER BY id DESC LIMIT 1"); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // killed before
		killed = append(killed, pid)
	}
	s.drained("default", 3*time.Minute)
	var runs []struct{ N, PID int }
	if err := s.db.Select(&runs, "SELECT n, pid FROM effects ORDER BY n, id"); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(runs); i++ {
		if runs[i].N == runs[i-1].N && !slices.Contains(killed, runs[i-1].PID) {
			t.Errorf("job %d ran twice, and its first process was not killed", runs[i].N)
		}
	}
	if len(runs) > n+kills || s.ran() != n || s.count("failed_jobs") != 0 {
		t.Errorf("%d runs of %d jobs, %d failed", len(runs), s.ran(), s.count("failed_jobs"))
	}
}
