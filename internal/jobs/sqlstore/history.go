package sqlstore

import "github.com/cmsjobs/cmsjobs/internal/jobs/tables"

// History answers what people ask of the jobs and lets them change what waits.
// It is safe for concurrent use.
type History struct {
	*tables.Tables
	throughput counted
}

// NewHistory returns the history of the jobs in the tables.
func NewHistory(t *tables.Tables) *History { return &History{Tables: t} }
