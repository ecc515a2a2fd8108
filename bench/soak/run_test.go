package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Three equal jobs that one slow run stands for all began with it, whichever of
// them it was, and one that was released at the end of the grace says so.
func TestTheJudgeReadsWhenARunBegan(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.MySQL)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	registry := jobs.NewRegistry()
	kind := jobs.Kind[json.RawMessage]{Name: "test.slow", Policy: jobs.Policy{Coalesce: true}}
	jobs.Handle(registry, kind, func(context.Context, jobs.Job, json.RawMessage) error { return nil })
	store, err := queue.Open(t.Context(), db.DB, tables.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	equal := func(key int) jobs.Spec { return kind.New(json.RawMessage(`{}`)).Named(uuidOf(key)) }
	if _, err := store.Enqueue(t.Context(), equal(1), equal(2), kind.New(json.RawMessage(`{"other":1}`)).Named(
		uuidOf(3)), equal(4)); err != nil {
		t.Fatal(err)
	}
	held, err := store.Claim(t.Context(), jobs.ClaimRequest{Worker: "w", Queues: []string{"default"}, Limit: 5,
		Lease: time.Minute})
	if err != nil || len(held) != 2 || len(held[0].Duplicates) != 2 {
		t.Fatalf("%d runs, %v", len(held), err)
	}
	const length = 15 * time.Second
	ends := []jobs.Settlement{
		{Claimed: held[0], Outcome: jobs.Completed, Worker: "w", Duration: length},
		{Claimed: held[1], Outcome: jobs.Released, Worker: "w", Duration: length,
			Error: fmt.Sprintf("calling hooks.example: %v", jobs.ErrShutdown)},
	}
	if errs, err := store.Settle(t.Context(), ends); err != nil || errs[0] != nil || errs[1] != nil {
		t.Fatal(errs, err)
	}
	runs, err := runsOf(t.Context(), db.DB)
	if err != nil || len(runs) != 4 {
		t.Fatalf("%d lines, %v; want 4", len(runs), err)
	}
	for _, r := range runs {
		if took := r.ended.Sub(r.started); took != length || r.toldToStop != (r.key == 3) {
			t.Errorf("job %d took %v, told to stop: %v", r.key, took, r.toldToStop)
		}
	}
}
