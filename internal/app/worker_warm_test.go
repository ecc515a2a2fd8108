package app

import (
	"io"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestAWorkerHasItsConnectionsBeforeItClaims counts those that a worker leaves that found no job:
// it wrote no end beside a look, so it needed no second one.
func TestAWorkerHasItsConnectionsBeforeItClaims(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{File: emptyFile(t)})
	if err != nil {
		t.Fatal(err)
	}
	loaded.Database.DSN = config.DSN(db.DSN)
	p := &Process{Version: "test", Err: io.Discard, Now: time.Now}
	r, err := p.Open(t.Context(), loaded)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.DB.SetMaxIdleConns(-1) // closes what was used so far
	r.DB.SetMaxIdleConns(4)
	w, closeIt, err := r.Worker(WorkerOptions{StopWhenEmpty: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt()
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := r.DB.Stats(); s.Idle < warmConnections {
		t.Errorf("the worker had %d connections, want %d", s.Idle, warmConnections)
	}
}
