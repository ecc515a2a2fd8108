package jobs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// bentClock is the wall clock of a server that runs under libfaketime.
type bentClock struct {
	t    *testing.T
	file string
}

// newBentMariaDB starts a MariaDB whose wall clock a test can move; its
// monotonic clock goes on, as on a host whose time is corrected.
func newBentMariaDB(t *testing.T, options ...string) (*jobstest.Server, *bentClock) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(found) == 0 {
		jobstest.Skip(t, "libfaketime is not installed (the package faketime)")
	}
	dir, err := os.MkdirTemp("", "cmsjobs-clock-") // not t.TempDir, which the server's account may not read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &bentClock{t, filepath.Join(dir, "time")}
	c.move(0)
	server, err := jobstest.NewMariaDB(options...)
	if err != nil {
		jobstest.Skip(t, "no MariaDB for the test: %v", err)
	}
	t.Cleanup(server.Stop)
	bent := map[string]string{"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": c.file, "FAKETIME_NO_CACHE": "1",
		"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
	for name, value := range bent {
		t.Setenv(name, value)
	}
	err = server.Start()
	for name := range bent {
		os.Unsetenv(name) // t.Setenv restores what was there
	}
	if err != nil {
		t.Fatal(err)
	}
	return server, c
}

// move sets the clock to so much before or after the true time, at once.
func (c *bentClock) move(by time.Duration) {
	c.t.Helper()
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(fmt.Sprintf("%+d\n", int(by.Seconds()))), 0o644); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil {
		c.t.Fatal(err)
	}
}

// The database's clock goes forward and back by an hour while jobs run: none of
// them is taken from its worker.
func TestAJumpOfTheDatabasesClockRepeatsNothing(t *testing.T) {
	server, clock := newBentMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	l := newLabOn(t, server)
	l.config.Lease, l.config.Slots = time.Duration(size(5, 15))*time.Second, size(8, 80)
	length, workers := 2*time.Second, size(3, 5)
	steps := []time.Duration{time.Hour, 0, -time.Hour, 0}
	// As many jobs as keep all slots busy meanwhile, due by each of the clocks.
	n := workers * l.config.Slots * int(time.Duration(len(steps)+1)*2*l.config.Lease/length)
	l.enqueue(0, n, effect{Length: length})
	l.db.MustExec("UPDATE jobs SET available_at = available_at - 7200")
	for range workers {
		startChild(t, l.config)
	}
	l.sink.await(t, 1, time.Minute)
	for _, to := range steps {
		before := l.databaseNow()
		clock.move(to)
		if after := l.databaseNow(); after.Sub(before).Abs() < 59*time.Minute {
			t.Fatalf("the clock of the database went from %v to %v: this tests nothing", before, after)
		}
		time.Sleep(2 * l.config.Lease)
	}
	l.sink.await(t, n, 3*time.Minute)
	l.empty()
	l.check(n)
	if starts, charged := l.starts(), l.charged(); starts != n || charged != 0 {
		t.Errorf("%d starts of %d jobs, %d attempts were charged", starts, n, charged)
	}
}

func (l *lab) databaseNow() time.Time {
	l.t.Helper()
	var now int64
	if err := l.db.Get(&now, "SELECT UNIX_TIMESTAMP()"); err != nil {
		l.t.Fatal(err)
	}
	return time.Unix(now, 0)
}
