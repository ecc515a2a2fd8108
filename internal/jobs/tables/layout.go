package tables

import (
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Layout names the two shapes of the jobs table.
type Layout string

// The two layouts.
const (
	// Stock is Laravel's own table: queue, payload, attempts, reserved_at,
	// available_at, created_at.
	Stock Layout = "stock"
	// Extended has name, payload_json, status, priority, run_at, attempts,
	// max_attempts, last_error, locked_at, locked_by, created_at, updated_at.
	Extended Layout = "extended"
)

// JobsTable is the jobs table as it was found.
type JobsTable struct {
	d             database.Dialect
	Name          string // quoted
	Plain         string
	Payload       string // quoted column
	Due, Locked   TimeColumn
	Created       TimeColumn
	updated       TimeColumn // zero where there is no such column
	AttemptsLimit int
	// Ordered is the index that serves claims best; byQueue is the next best,
	// which the layouts bring themselves: (queue), or (queue, status, run_at).
	// "" where there is none.
	Ordered, byQueue string
	Transactional    bool
}

// Fragments is what differs between the two shapes: fragments of SQL.
type Fragments interface {
	Name() Layout
	Table() *JobsTable
	// Columns of a candidate beside id, attempts and payload: status token name
	// priority max_attempts.
	Columns() string
	// Waiting and Expired are conditions on a row that may be claimed.
	Waiting() string
	Expired(now string, retryAfter int64) string
	// Class narrows to one class of priority; it is empty without priorities.
	Class(priority int) string
	// Unchanged is the condition that a row still is as the candidate was read.
	Unchanged(c *Candidate) (string, []any)
	// ClaimRows, Renew and Release are the SET parts of UPDATEs. until is when the
	// lease began as readers compute it (see the package's text). Release makes the
	// row due at due, or leaves that time where due is ""; uncount takes the
	// attempt back.
	ClaimRows(until int64, token string) (string, []any)
	Renew(until int64) string
	Release(due string, end jobs.Settlement, uncount bool) (string, []any)
	// Guard is the condition that a lease still holds; tried are other values
	// that unanswered renewals may have written.
	Guard(l jobs.Lease, tried []int64) (string, []any)
	// Insert names the columns of a new row, Row its values.
	Insert() string
	Row(n jobs.Spec, payload, due, now string, maxAttempts int) (string, []any)
}
