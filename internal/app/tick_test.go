package app

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/app/probe"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// openServices opens a site on SQLite whose configuration is as usual but for a change.
func openServices(t *testing.T, change func(*config.Loaded)) *Services {
	t.Helper()
	db := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	loaded.Database.DSN = config.DSN(db.DSN)
	change(loaded)
	p := &Process{Version: "test", Err: io.Discard, Now: time.Now}
	r, err := p.Open(t.Context(), loaded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// POST /api/cron/tick may come from several hosts at once, while the process's
// own workers start. The rounds share no state: go test -race sees it if they do.
func TestRoundsAtOnceShareNothing(t *testing.T) {
	r := openServices(t, func(c *config.Loaded) {
		c.Queue.MaxTime, c.Queue.InternalRows = time.Hour, []string{probe.Kind.Name}
	})
	list := make([]jobs.Spec, 20)
	for i := range list {
		list[i] = probe.Kind.New(probe.Payload{})
	}
	if _, err := r.Store.Enqueue(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	var ran atomic.Int64
	var rounds sync.WaitGroup
	for range 3 {
		rounds.Go(func() {
			report, err := r.Tick(t.Context(), 30*time.Second)
			if err != nil {
				t.Error(err)
			}
			ran.Add(int64(report.Ran))
		})
	}
	rounds.Wait()
	if ran.Load() < int64(len(list)) {
		t.Errorf("the rounds report %d runs of %d jobs", ran.Load(), len(list))
	}
	if r.Config.Queue.MaxTime != time.Hour {
		t.Errorf("a round left queue.max_time at %s for the workers that start after it", r.Config.Queue.MaxTime)
	}
}
