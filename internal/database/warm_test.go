package database

import (
	"context"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestWarmConnectionsAreThereAndIdle counts them, also where fewer are allowed or none can be had.
func TestWarmConnectionsAreThereAndIdle(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db, err := Connect(t.Context(), ConnectOptions{DSN: jobstest.Open(t, engine).DSN, MaxConnections: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			Warm(t.Context(), db, 3)
			if s := db.Stats(); s.Idle != 3 || s.OpenConnections != 3 {
				t.Errorf("%d connections, %d of them idle, want 3", s.OpenConnections, s.Idle)
			}
			db.SetMaxOpenConns(2)
			Warm(t.Context(), db, 5)
			if s := db.Stats(); s.Idle != 2 || s.OpenConnections != 2 {
				t.Errorf("%d connections, %d of them idle, where 2 are allowed", s.OpenConnections, s.Idle)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			Warm(gone, db, 2)
		})
	}
}
