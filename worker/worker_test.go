package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/worker"
)

type greeting struct {
	Name string `json:"name"`
}

// service is the service's side: it enqueues and looks.
type service struct {
	*testing.T
	*queue.Store
	history *history.Store
}

func everywhere(t *testing.T, test func(q service, w *worker.Worker)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			t.Run(fmt.Sprintf("%s-%s", engine, layout), func(t *testing.T) {
				db := jobstest.Migrated(t, engine)
				if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
					t.Fatal(err)
				}
				found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: jobs.NewRegistry(),
					DefaultQueue: "cmsjobs"})
				if err != nil {
					t.Fatal(err)
				}
				store, err := queue.New(t.Context(), found)
				if err != nil {
					t.Fatal(err)
				}
				w, err := worker.New(t.Context(), db.DB.DB, db.Driver, worker.Options{Slots: 2})
				if err != nil {
					t.Fatal(err)
				}
				test(service{t, store, history.New(found)}, w)
			})
		}
	}
}

func (q service) put(kind, data string) string {
	q.Helper()
	receipts, err := q.Enqueue(q.Context(), jobs.Spec{Type: kind, Data: []byte(data)})
	if err != nil {
		q.Fatal(err)
	}
	return receipts[0].UUID
}

// await polls until a job has a state.
func (q service) await(id string, state jobs.Status) {
	q.Helper()
	var last jobs.Status
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r, err := q.history.Job(q.Context(), id)
		if err != nil {
			q.Fatal(err)
		}
		if last = r.Status; last == state {
			return
		}
	}
	q.Fatalf("the job is %s, not %s", last, state)
}

func TestAnotherProgramRunsItsOwnKinds(t *testing.T) {
	everywhere(t, func(q service, w *worker.Worker) {
		ctx, greeted := q.Context(), make(chan string, 10)
		worker.Register(w, "greet", func(_ context.Context, g greeting) error {
			if g.Name == "" {
				return worker.Permanent(errors.New("nobody to greet"))
			}
			greeted <- g.Name
			return nil
		})
		ann, nobody, other := q.put("greet", `{"name":"Ann"}`), q.put("greet", `{}`), q.put("other.type", `{}`)
		if err := w.Start(ctx); err != nil {
			q.Fatal(err)
		}
		if err := w.Start(ctx); err == nil {
			q.Error("a second Start is taken")
		}
		if name := <-greeted; name != "Ann" {
			q.Errorf("greeted %s", name)
		}
		q.await(ann, jobs.StatusCompleted)
		q.await(nobody, jobs.StatusFailed)
		q.await(other, jobs.StatusQueued)
		if err := w.Stop(ctx); err != nil {
			q.Error(err)
		}
		late := q.put("greet", `{"name":"Late"}`)
		if err := w.Stop(ctx); err != nil {
			q.Errorf("stopping twice: %v", err)
		}
		if err := w.Start(ctx); err != nil {
			q.Fatalf("starting again: %v", err)
		}
		q.await(late, jobs.StatusCompleted)
		if err := w.Stop(ctx); err != nil {
			q.Error(err)
		}
	})
}

// The hooks of specification S3: Setup before the first job, Refresh again and again.
func TestHooksRunBeforeAndBesideTheJobs(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	refused, refreshed, ready := errors.New("no folder"), make(chan bool, 100), false
	var why error
	w, err := worker.New(t.Context(), db.DB.DB, db.Driver, worker.Options{
		Setup: func(context.Context) error { ready = why == nil; return why },
		Refresh: func(context.Context) error {
			refreshed <- ready
			return errors.New("a refresh that fails is no end")
		}, RefreshEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	why = refused
	if err := w.Start(t.Context()); !errors.Is(err, refused) {
		t.Errorf("Start returns %v", err)
	}
	why = nil
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case was := <-refreshed:
			if !was {
				t.Error("refreshed before Setup ran")
			}
		case <-time.After(time.Minute):
			t.Fatal("no refresh within a minute")
		}
	}
	if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
