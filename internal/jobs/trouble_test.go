package jobs_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// counted is a store that counts failed settlements.
type counted struct {
	*queue.Store
	refused atomic.Int64
}

func (c *counted) Settle(ctx context.Context, ends []jobs.Settlement) ([]error, error) {
	results, err := c.Store.Settle(ctx, ends)
	if err != nil {
		c.refused.Add(1)
	}
	return results, err
}

// TestTroubleIsSaidOnce lets the database answer while results cannot be
// written, as on a full disk: the log says so once, and once that it is over.
func TestTroubleIsSaidOnce(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	kind := jobs.Kind[map[string]any]{Name: "some.work"}
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, map[string]any) error { return nil })
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry, DefaultQueue: "cmsjobs"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), jobs.Spec{Type: kind.Name}); err != nil {
		t.Fatal(err)
	}
	db.MustExec("ALTER TABLE cmsjobs_runs RENAME TO lost")
	source, log := &counted{Store: store}, new(jobstest.Log)
	w, err := jobs.NewWorker(jobs.Config{Source: source, Workers: store, Registry: registry, Now: time.Now,
		Info: jobs.WorkerInfo{ID: "test"}, Slots: 2, Queues: []string{"cmsjobs"},
		PollMin: 5 * time.Millisecond, PollMax: 5 * time.Millisecond, StopWhenEmpty: true,
		Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	for deadline := time.Now().Add(time.Minute); source.refused.Load() < 10; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the worker does not try again")
		}
	}
	db.MustExec("ALTER TABLE lost RENAME TO cmsjobs_runs")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	text := log.String()
	for _, line := range []string{"database statements fail; trying again", "database answers again"} {
		if n := strings.Count(text, line); n != 1 {
			t.Errorf("%d times: %s\n%s", n, line, text)
		}
	}
}
