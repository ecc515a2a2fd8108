package history

import (
	"context"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Store answers what people ask of the jobs and lets them change what waits.
// It is safe for concurrent use.
type Store struct {
	tables     *tables.Tables
	throughput counted // of cmsjobs_throughput
	figures    counted // of cmsjobs_run_figures
}

// New returns the history of the jobs in the tables.
func New(t *tables.Tables) *Store { return &Store{tables: t} }

// Now is the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.tables.Now(ctx) }

// counted is until when this process found everything counted.
type counted struct {
	mu    sync.Mutex
	until int64 // Unix ms
}
