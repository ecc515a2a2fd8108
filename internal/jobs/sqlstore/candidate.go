package sqlstore

import (
	"database/sql"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Candidate is a row as it was read without a lock.
type Candidate struct {
	id          int64
	at          string // exact position in the order
	due         int64
	seen        int64 // the database's now when it was read
	created     int64
	attempts    int
	locked      sql.NullInt64
	status      string
	token       sql.NullString
	name        string
	priority    int
	MaxAttempts int
	size        int64
	payload     []byte // the beginning only, where size is over the limit

	job        jobs.Job
	policy     jobs.Policy
	fault      error
	rescued    bool
	duplicates []*Candidate
	primary    int64 // the row that it is taken with; its own id where it leads
}
