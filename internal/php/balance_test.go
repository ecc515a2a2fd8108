//go:build unix

package php_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/php"
)

// A flood on one queue gets the processes, as many as all may have together and as there
// is memory for, and they end when it is over. No job is lost or run twice on the way.
func TestAFloodGetsTheProcesses(t *testing.T) {
	const most = 5
	for _, x := range []struct {
		behaviour string
		n         int
		memory    int64
		from, to  int // so many processes has the flooded queue at most
	}{{"take its time", 60, 0, most - 1, most - 1}, {"at once", 6000, 0, 2, most - 1}, {"take its time", 20, 1, 1, 1}} {
		t.Run(fmt.Sprint(x.behaviour, " ", x.memory), func(t *testing.T) {
			if x.memory > 0 && runtime.GOOS != "linux" {
				t.Skip("memory is measured on Linux")
			}
			r := newRig(t, 0, laravels)
			r.db.MustExec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				INSERT INTO jobs (queue, payload, attempts, available_at, created_at)
				SELECT 'default', ?, 0, 1, 1 FROM n`, x.n, laravels)
			f := r.flood(x.behaviour, &php.Balancer{Most: most, Memory: x.memory, Every: 50 * time.Millisecond})
			reached := 0
			r.await("the flood is over", 2*time.Minute, func() bool {
				here, there := living(f["default"]), living(f["quiet"])
				if here+there > most {
					t.Errorf("%d and %d processes are more than %d", here, there, most)
				}
				reached = max(reached, here)
				return r.count("jobs") == 0
			})
			if reached < x.from || reached > x.to {
				t.Errorf("the flooded queue had %d processes at most, want %d to %d", reached, x.from, x.to)
			}
			r.await("one process of each is left", time.Minute, func() bool {
				return living(f["default"]) == 1 && living(f["quiet"]) == 1
			})
			if done, all := r.count("cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"),
				r.count("cmsjobs_runs"); done != x.n || all != x.n {
				t.Errorf("%d of %d runs of %d jobs are completed at first", done, all, x.n)
			}
			if strings.Contains(r.log.String(), "php.process_ended") {
				t.Error("a process that was to end counts as broken")
			}
		})
	}
}

// flood runs two balanced pools until the test ends, and returns their folders by queue.
func (r *rig) flood(behaviour string, b *php.Balancer) map[string]string {
	r.t.Helper()
	b.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	dirs := map[string]string{}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	r.t.Cleanup(func() {
		cancel()
		group.Wait()
		if r.t.Failed() {
			r.t.Log(r.log)
		}
	})
	for _, queue := range []string{"default", "quiet"} {
		source, err := sourceOn(r.db.DB)
		if err != nil {
			r.t.Fatal(err)
		}
		dirs[queue] = r.t.TempDir()
		pool, err := php.New(php.Config{Source: source, Queue: queue, Connection: "database", Processes: 1,
			MaxProcesses: 8, Worker: "test:1", Now: time.Now, Logger: b.Logger,
			Command: []string{"env", "CHILD=" + behaviour, "CHILD_DIR=" + dirs[queue], os.Args[0]}})
		if err != nil {
			r.t.Fatal(err)
		}
		b.Pools = append(b.Pools, pool)
		group.Go(func() {
			if err := pool.Run(ctx); err != nil {
				r.t.Error(err)
			}
		})
	}
	group.Go(func() { b.Run(ctx) })
	return dirs
}

// living are the processes that wrote their number into a folder and have not ended.
func living(dir string) (n int) {
	names, _ := filepath.Glob(filepath.Join(dir, "pid-*"))
	for _, name := range names {
		pid, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(name), "pid-"))
		if syscall.Kill(pid, 0) == nil {
			n++
		}
	}
	return n
}
