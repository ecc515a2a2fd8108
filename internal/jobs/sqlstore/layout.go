package sqlstore

import (
	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/database"
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
	name          string // quoted
	plain         string
	payload       string // quoted column
	due, locked   TimeColumn
	created       TimeColumn
	updated       TimeColumn // zero where there is no such column
	attemptsLimit int
	// ordered is the index that serves claims best; byQueue is the next best,
	// which the layouts bring themselves: (queue), or (queue, status, run_at).
	// "" where there is none.
	ordered, byQueue string
	transactional    bool
}

// Fragments is what differs between the two shapes: fragments of SQL.
type Fragments interface {
	Name() Layout
	Table() *JobsTable
	// columns of a candidate beside id, attempts and payload: status token name
	// priority max_attempts.
	columns() string
	// waiting and expired are conditions on a row that may be claimed.
	waiting() string
	expired(now string, retryAfter int64) string
	// class narrows to one class of priority; it is empty without priorities.
	class(priority int) string
	// unchanged is the condition that a row still is as the candidate was read.
	unchanged(c *Candidate) (string, []any)
	// take, renew and giveBack are the SET parts of UPDATEs. until is when the
	// lease began for the reader's arithmetic (see the package's text).
	claimRows(until int64, token string) (string, []any)
	renew(until int64) string
	giveBack(due string, end jobs.Settlement, uncount bool) (string, []any)
	// guard is the condition that a lease still holds; tried are other values
	// that unanswered renewals may have written.
	guard(l jobs.Lease, tried []int64) (string, []any)
	// insert names the columns of a new row, row its values.
	insert() string
	row(n jobs.Spec, payload, due, now string, maxAttempts int) (string, []any)
}
