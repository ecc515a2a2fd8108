package php_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// processes are the PHP processes of the service.
func (x *service) processes() (pids []int) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", x.cmd.Process.Pid))
	if err != nil || len(lists) == 0 {
		x.t.Fatalf("the service's threads: %d, %v", len(lists), err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				x.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// unreadBy is how many bytes of its orders a process has not read.
func unreadBy(t *testing.T, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/fd/3", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stopInAJob stops processes so that one of them has a part of a job. The job is there at
// once: enqueued by PHP after the stop, it would come when what they asked for is answered.
// Stopped in the moment between two questions they get none: then all go on, and are
// stopped again.
func (s *site) stopInAJob(pids []int) {
	s.t.Helper()
	signal := func(what syscall.Signal) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, what); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	written := func() bool {
		return slices.ContainsFunc(pids, func(pid int) bool { return unreadBy(s.t, pid) >= 1<<16 })
	}
	for range 15 {
		s.push("aside", "big", "{}")
		signal(syscall.SIGSTOP)
		s.db.MustExec("UPDATE jobs SET queue = 'default'")
		for late := time.Now().Add(5 * time.Second); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
			if written() {
				return
			}
		}
		signal(syscall.SIGCONT)
		s.drained("default", time.Minute)
	}
	s.t.Fatal("no part of a job was ever written")
}

// The service is killed while it writes a job to a process: the job has not begun, and with
// one try it is not failed for that.
func TestAKillWhileAJobIsHandedOutCostsNoAttempt(t *testing.T) {
	jobstest.EachMySQL(t, testAKillWhileAJobIsHandedOutCostsNoAttempt)
}

func testAKillWhileAJobIsHandedOutCostsNoAttempt(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, time.Hour)
	x := s.service("1")
	s.run("push-many", "default", "effect", "0", "1")
	s.drained("default", time.Minute)
	s.stopInAJob(x.processes())
	x.kill() // the kernel ends stopped processes without a parent by SIGHUP
	s.service("1")
	s.drained("default", time.Minute)
	if failed := s.count("failed_jobs"); failed != 0 {
		t.Errorf("%d jobs are in failed_jobs", failed)
	}
	if events := s.events()["big"]; !slices.Contains(events, fmt.Sprint("length ", 6<<20)) {
		t.Errorf("the job did %q", events)
	}
}

// What may have reached a process that outlived its service is not run by another meanwhile.
func TestWhatAnotherProcessMayHaveWaitsForItsEnd(t *testing.T) {
	jobstest.EachMySQL(t, testWhatAnotherProcessMayHaveWaitsForItsEnd)
}

func testWhatAnotherProcessMayHaveWaitsForItsEnd(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, time.Hour)
	s.run("push-many", "default", "effect", "0", "1")
	s.db.MustExec("UPDATE jobs SET attempts = 1, reserved_at = UNIX_TIMESTAMP()")
	var row struct{ ID, Reserved int64 }
	if err := s.db.Get(&row, "SELECT id, reserved_at AS reserved FROM jobs"); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceFunc(func() {
		_ = other.Process.Kill()
		_ = other.Wait() // killed
	})
	t.Cleanup(ended)
	record := func(kind byte, numbers ...int64) []byte {
		data := []byte{kind}
		for _, n := range numbers {
			data = binary.BigEndian.AppendUint64(data, uint64(n))
		}
		return data
	}
	journal := slices.Concat(record('a', row.ID, 1, row.Reserved), record('h', row.ID, int64(other.Process.Pid), 0))
	if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("php-%x-1.ahead", "default")), journal, 0o600); err != nil {
		t.Fatal(err)
	}
	s.service("1")
	s.run("push-many", "default", "effect", "1", "1")
	s.await("a fresh job has run", time.Minute, func() bool { return s.ran() == 1 })
	if n := s.count("jobs WHERE id = ? AND attempts = 1 AND reserved_at IS NOT NULL", row.ID); n != 1 {
		t.Error("the job was released while a process may have it")
	}
	ended()
	s.await("the job has run", killLease/2, func() bool { return s.ran() == 2 })
	s.drained("default", time.Minute)
	if failed := s.count("failed_jobs"); failed != 0 {
		t.Errorf("%d jobs are in failed_jobs", failed)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "php-*-1.ahead")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}
