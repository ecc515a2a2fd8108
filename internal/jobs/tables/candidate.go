package tables

import (
	"database/sql"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Candidate is a row as it was read without a lock.
type Candidate struct {
	ID          int64
	At          string // exact position in the order
	Due         int64
	Seen        int64 // the database's now when it was read
	Created     int64
	Attempts    int
	Locked      sql.NullInt64
	Status      string
	Token       sql.NullString
	Name        string
	Priority    int
	MaxAttempts int
	Size        int64
	Payload     []byte // the beginning only, where size is over the limit
	// Sent says that the row was not read: the program that inserted it sent it. It is
	// claimed only if the table has it so.
	Sent bool

	Job        jobs.Job
	Policy     jobs.Policy
	Fault      error
	Rescued    bool
	Duplicates []*Candidate
	Primary    int64 // the row whose run does its work; its own id where that is itself
}
