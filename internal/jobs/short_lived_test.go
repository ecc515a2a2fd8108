package jobs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A worker that ends when there is nothing to do, or after one job, looks at
// the whole table before: it runs the job of a worker that died, behind rows of
// others, and a job that was committed late.
func TestAShortLivedWorkerRescues(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			for _, once := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/once=%v", engine, layout, once), func(t *testing.T) {
					db := jobstest.Migrated(t, engine)
					if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
						t.Fatal(err)
					}
					registry, kind := jobs.NewRegistry(), jobs.Kind[struct{}]{Name: "test.rescued"}
					var attempt atomic.Int64
					jobs.Handle(registry, kind, func(_ context.Context, j jobs.Job, _ struct{}) error {
						attempt.Store(int64(j.Attempt))
						return nil
					})
					for range 100 {
						insertRow(t, db, layout, "other.plugin", 0)
					}
					insertRow(t, db, layout, "test.rescued", time.Now().Add(-time.Hour).Unix())
					runToTheEnd(t, db, registry, once)
					if attempt.Load() != 2 {
						t.Errorf("the dead worker's job ran as attempt %d, want the second attempt", attempt.Load())
					}
				})
			}
		}
	}
}

// insertRow writes a job of a type; locked is when a worker took it, or 0.
func insertRow(t *testing.T, db *jobstest.Database, layout tables.Layout, name string, locked int64) {
	t.Helper()
	payload, attempts, then := fmt.Sprintf(`{"type":%q}`, name), 0, time.Now().Add(-2*time.Hour)
	var lock any
	if locked > 0 {
		lock, attempts = locked, 1
	}
	if layout == tables.Stock {
		db.MustExec(db.Rebind("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) "+
			"VALUES ('default',?,?,?,?,?)"), payload, attempts, lock, then.Unix(), then.Unix())
		return
	}
	status := map[bool]string{false: "queued", true: "processing"}[locked > 0]
	if locked > 0 {
		lock = time.Unix(locked, 0).UTC().Format(time.DateTime)
	}
	db.MustExec(db.Rebind("INSERT INTO jobs (queue, name, payload_json, status, attempts, locked_at, run_at, "+
		"created_at) VALUES ('default',?,?,?,?,?,?,?)"),
		name, payload, status, attempts, lock, then.UTC().Format(time.DateTime), then.UTC().Format(time.DateTime))
}

// runToTheEnd lets a worker run until it ends by itself.
func runToTheEnd(t *testing.T, db *jobstest.Database, registry *jobs.Registry, once bool) {
	t.Helper()
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Registry: registry, Now: time.Now, Slots: 1, Once: once,
		StopWhenEmpty: !once, PollMin: 10 * time.Millisecond, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
