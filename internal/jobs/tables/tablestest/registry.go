package tablestest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The types that Registry knows.
var (
	Plain   = jobs.Kind[json.RawMessage]{Name: "test.plain"}
	Limited = jobs.Kind[json.RawMessage]{Name: "test.limited", Policy: jobs.Policy{Limit: 2}}
	Rated   = jobs.Kind[json.RawMessage]{Name: "test.rated", Policy: jobs.Policy{Limit: 4, Rates: []jobs.Rate{
		{Starts: 3, Per: 10 * time.Second}, {Starts: 5, Per: time.Minute}}}}
	Often    = jobs.Kind[json.RawMessage]{Name: "test.often", Policy: jobs.Policy{MaxAttempts: 100_000}}
	Coalesce = jobs.Kind[json.RawMessage]{Name: "test.coalesce", Policy: jobs.Policy{Coalesce: true}}
)

// Registry has types whose handlers do nothing.
func Registry() *jobs.Registry {
	r := jobs.NewRegistry()
	nothing := func(context.Context, jobs.Job, json.RawMessage) error { return nil }
	for _, k := range []jobs.Kind[json.RawMessage]{Plain, Limited, Rated, Often, Coalesce} {
		jobs.Handle(r, k, nothing)
	}
	return r
}

// Job is a plain job with its data as JSON.
func Job(data string) jobs.Spec { return Plain.New(json.RawMessage(data)) }

func open(t testing.TB, db *jobstest.Database, o tables.Options) *tables.Tables {
	t.Helper()
	found, err := tables.Open(context.Background(), db.DB, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
