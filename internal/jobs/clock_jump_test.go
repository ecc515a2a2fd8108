package jobs_test

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The database's clock goes forward and back by an hour while jobs run: none of
// them is taken from its worker.
func TestAJumpOfTheDatabasesClockRepeatsNothing(t *testing.T) {
	server, err := jobstest.NewMariaDB("--innodb-flush-log-at-trx-commit=1")
	if err != nil {
		jobstest.Skip(t, "no MariaDB for the test: %v", err)
	}
	t.Cleanup(server.Stop)
	clock, err := jobstest.NewMovableClock(server, server.Dir)
	if err != nil {
		jobstest.Skip(t, "no clock that can be moved: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
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
		if err := clock.Move(to); err != nil {
			t.Fatal(err)
		}
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
