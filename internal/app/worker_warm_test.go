package app

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/config"
)

// TestAWorkerHasItsConnectionsBeforeItClaims counts those that a worker leaves that found no job:
// it wrote no end beside a look, so it needed no second one.
func TestAWorkerHasItsConnectionsBeforeItClaims(t *testing.T) {
	r := openServices(t, func(*config.Loaded) {})
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
