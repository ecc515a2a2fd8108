//go:build unix

package php_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestWhatJobsPrintIsTheirLog(t *testing.T) { jobstest.EachMySQL(t, testWhatJobsPrintIsTheirLog) }

func testWhatJobsPrintIsTheirLog(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	s.push("default", "print", "{}", "delete", "{}", "print", "{}")
	stop := s.start(s.config("default"))
	s.drained("default", time.Minute)
	stop()
	var lines []string
	want := []string{"hello    junk from a job", "and stderr", "no end of line"}
	if err := s.db.Select(&lines, "SELECT line FROM cmsjobs_job_logs ORDER BY id"); err != nil ||
		!slices.Equal(lines, slices.Concat(want, want)) {
		t.Errorf("the log has %q, %v", lines, err)
	}
	if n := s.count(`cmsjobs_runs WHERE type = 'App\\Jobs\\Probe' AND outcome = 'completed'`); n != 3 {
		t.Errorf("%d runs in the history", n)
	}
}

// Under queue:work the forgotten transaction swallows the deletion of this job and of
// each that follows.
func TestATransactionThatAJobForgotIsUndone(t *testing.T) {
	jobstest.EachMySQL(t, testATransactionThatAJobForgotIsUndone)
}

func testATransactionThatAJobForgotIsUndone(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	s.push("default", "opentx", "{}", "effect", `{"n":1}`)
	stop := s.start(s.config("default"))
	s.drained("default", time.Minute)
	stop()
	if a, b := s.count("effects WHERE n = -1"), s.count("effects WHERE n = 1"); a != 0 || b != 1 {
		t.Errorf("%d writes of the forgotten transaction, %d of the next job", a, b)
	}
	if n := s.count("cmsjobs_job_logs WHERE line LIKE 'the job left a transaction open%'"); n != 1 {
		t.Error("the job's log does not say so")
	}
}

func TestALargeJobRuns(t *testing.T) { jobstest.EachMySQL(t, testALargeJobRuns) }

func testALargeJobRuns(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	s.push("default", "big", "{}")
	stop := s.start(s.config("default"))
	s.drained("default", time.Minute)
	stop()
	if events := s.events()["big"]; !slices.Contains(events, fmt.Sprint("length ", 6<<20)) ||
		s.count("failed_jobs") != 0 {
		t.Errorf("events %q", events)
	}
}

// When the service stops, jobs in hand end, and the others are as they were.
func TestAStopLetsJobsEndAndCountsNoOther(t *testing.T) {
	jobstest.EachMySQL(t, testAStopLetsJobsEndAndCountsNoOther)
}

func testAStopLetsJobsEndAndCountsNoOther(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	s.run("push-many", "default", "slow", "0", "20")
	c := s.config("default")
	c.Processes, c.Grace = 2, time.Minute
	stop := s.start(c)
	begun := func() int {
		text, _ := os.ReadFile(filepath.Join(s.dir, "events.log"))
		return strings.Count(string(text), "slow: begun")
	}
	s.await("two jobs run", time.Minute, func() bool { return begun() >= 2 })
	stop()
	if ran, left := s.count("effects"), s.count("jobs WHERE attempts = 0 AND reserved_at IS NULL"); ran != begun() ||
		ran+left != 20 || s.count("jobs") != left {
		t.Errorf("%d jobs began, %d ended, %d are as they were, %d rows", begun(), ran, left, s.count("jobs"))
	}
}

func TestMaintenanceModeReservesNothing(t *testing.T) {
	jobstest.EachMySQL(t, testMaintenanceModeReservesNothing)
}

func testMaintenanceModeReservesNothing(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	down := filepath.Join(s.dir, "storage", "framework", "down")
	if err := os.MkdirAll(filepath.Dir(down), 0o700); err != nil {
		t.Fatal(err)
	}
	s.run("push-many", "default", "effect", "0", "1")
	stop := s.start(s.config("default"))
	s.drained("default", time.Minute) // the process is warm
	if err := os.WriteFile(down, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // its question is answered by then, and it sees the file before it asks again
	s.run("push-many", "default", "effect", "1", "10")
	time.Sleep(2 * time.Second) // nothing must happen
	if n := s.count("jobs WHERE attempts = 0 AND reserved_at IS NULL"); n != 10 {
		t.Errorf("%d of 10 rows are untouched", n)
	}
	s.run("push-many", "forced", "effect", "20", "1")
	stopForced := s.start(s.config("forced", "--force"))
	s.drained("forced", time.Minute)
	stopForced()
	if err := os.Remove(down); err != nil {
		t.Fatal(err)
	}
	s.drained("default", time.Minute)
	stop()
}

func TestLaravelRecyclesProcesses(t *testing.T) { jobstest.EachMySQL(t, testLaravelRecyclesProcesses) }

func testLaravelRecyclesProcesses(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, lease)
	s.run("push-many", "default", "effect", "0", "20")
	stop := s.start(s.config("default", "--max-jobs=5"))
	s.drained("default", 2*time.Minute)
	if pids, ran := s.count("(SELECT DISTINCT pid FROM effects) p"), s.count("effects"); pids != 4 || ran != 20 {
		t.Errorf("%d jobs ran in %d processes", ran, pids)
	}
	s.run("push-many", "default", "effect", "20", "1")
	s.drained("default", time.Minute)
	time.Sleep(time.Second) // queue:restart counts whole seconds
	s.run("restart")
	time.Sleep(2 * time.Second) // the worker sees it when its question is answered
	s.run("push-many", "default", "effect", "21", "1")
	s.drained("default", time.Minute)
	stop()
	if n := s.count("(SELECT DISTINCT pid FROM effects WHERE n >= 20) p"); n != 2 || s.count("effects") != 22 {
		t.Errorf("%d processes ran the jobs before and after queue:restart", n)
	}
}

// The worker's classes of the package by themselves.
func TestTheClassesOfThePackage(t *testing.T) {
	if _, err := os.Stat("/usr/share/php/Illuminate/Queue/autoload.php"); err != nil {
		jobstest.Skip(t, "no Laravel here (packages php-cli, php-laravel-framework): %v", err)
	}
	if out, err := exec.Command("php", "-d", "error_reporting=6135", "../../sdk/php/tests/worker.php").
		CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
