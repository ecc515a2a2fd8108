package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// disk is a file system of the test's own that can be full.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T, size string) *disk {
	t.Helper()
	dir, err := os.MkdirTemp("", "cmsjobs-disk-") // not t.TempDir, which the server's account may not pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &disk{t, dir}
	jobstest.SmallDisk(t, d.dir, "mode=0777,size="+size)
	return d
}

// full takes every byte that is free or comes free, for so long.
func (d *disk) full(length time.Duration) {
	d.t.Helper()
	block := make([]byte, 1<<20)
	var names []string
	for end := time.Now().Add(length); time.Now().Before(end); {
		name := filepath.Join(d.dir, fmt.Sprintf("ballast%d", len(names)))
		f, err := os.Create(name)
		if err == nil {
			names = append(names, name)
			for n := len(block); n > 0; {
				if _, err = f.Write(block[:n]); err != nil {
					n /= 2
				}
			}
			f.Close()
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatalf("filling the disk: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			d.t.Fatal(err)
		}
	}
}

// produce enqueues jobs, some a second, until stop, and returns how many were
// acknowledged.
func (l *lab) produce(perSecond int, stop <-chan struct{}) (acknowledged int) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for key := 0; ; key++ {
		select {
		case <-stop:
			return acknowledged
		case <-tick.C:
		}
		n := effectKind.New(effect{Key: key, Length: 100 * time.Millisecond}).Named(uuid.NewString())
		for { // a name is enqueued once
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			_, err := l.store.Enqueue(ctx, n)
			cancel()
			if err == nil {
				acknowledged++
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// F13: the database's disk is full for longer than a lease. No attempt is
// charged and nothing is repeated.
func TestAFullDiskChargesAndRepeatsNothing(t *testing.T) {
	t.Run("mariadb", func(t *testing.T) {
		d := newDisk(t, "160m")
		t.Setenv("TMPDIR", d.dir)
		server := jobstest.OwnMariaDB(t, "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=64M",
			"--innodb-flush-log-at-trx-commit=1")
		t.Setenv("TMPDIR", "")
		newLabOn(t, server).outlasts(d.full)
	})
	t.Run("sqlite", func(t *testing.T) {
		d := newDisk(t, "24m")
		newLabAt(t, "sqlite:"+filepath.Join(d.dir, "cms.sqlite")).outlasts(d.full)
	})
}

// The server is read-only for longer than a lease, so that no lease can be
// renewed: those whose ends could not be written write them before anybody
// takes their jobs.
func TestAReadOnlyServerChargesAndRepeatsNothing(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		l := newLab(t, engine)
		l.workAsNobody()
		l.outlasts(l.readOnly)
	})
}

// outlasts lets workers go through trouble of the database that lasts for two
// and a half leases, while jobs come in.
func (l *lab) outlasts(trouble func(time.Duration)) {
	l.t.Helper()
	l.config.Lease = time.Duration(size(4, 10)) * time.Second
	stop, enqueued := make(chan struct{}), make(chan int, 1)
	var n int
	var producing sync.WaitGroup
	producing.Go(func() { enqueued <- l.produce(25, stop) })
	for range 3 {
		startChild(l.t, l.config)
	}
	for range size(1, 2) {
		l.sink.await(l.t, n+50, time.Minute)
		trouble(l.config.Lease * 5 / 2)
		l.sink.mu.Lock()
		n = len(l.sink.ends)
		l.sink.mu.Unlock()
		l.sink.await(l.t, n+50, time.Minute)
	}
	close(stop)
	n = <-enqueued
	producing.Wait()
	l.sink.await(l.t, n, 2*time.Minute)
	l.empty()
	l.check(n)
	if starts, charged := l.starts(), l.charged(); starts != n || charged != 0 {
		l.t.Errorf("%d starts of %d jobs, %d attempts were charged", starts, n, charged)
	}
}

// charged is how many runs the history counts beyond the first of each job.
func (l *lab) charged() (n int) {
	l.t.Helper()
	if err := l.db.Get(&n, "SELECT COUNT(*) FROM cmsjobs_runs WHERE attempt > 1 OR outcome = 'crashed'"); err != nil {
		l.t.Fatal(err)
	}
	return n
}
