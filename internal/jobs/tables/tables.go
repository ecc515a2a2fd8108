package tables

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Tables are the CMS's jobs and failed_jobs as they were found, and our own
// tables beside them. They are safe for concurrent use.
type Tables struct {
	Options    Options
	DB, OwnDB  *sqlx.DB
	Dialect    database.Dialect
	Layout     Fragments
	Failed     FailedTable
	TxOptions  *sql.TxOptions
	Server     string
	MaxBatch   int // rows that one transaction takes or settles
	MaxBytes   int // of one statement
	RetryAfter int64
	JSONTable  bool // see runs_shared.go
	Asked      atomic.Int64
	rescue     rescue                             // see rescue.go
	Watch      func(statement string, args []any) // sees what is read. For tests of plans only
}

// FailedTable is failed_jobs as it was found.
type FailedTable struct {
	Name       string // quoted
	UUID       bool   // Laravel 5 to 7 had none
	FailedAt   TimeColumn
	ColumnType string // the column's type: a MySQL TIMESTAMP is converted by session
}

// rescue is what a store knows about both.
type rescue struct {
	mu       sync.Mutex
	length   time.Duration // of leases here, as last heard
	notUntil time.Time     // of Options.Clock: nothing is rescued before
	seen     sighting
	jump     ClockJump
}

// ClockJump is a step of the database's clock against this host's monotonic
// clock.
type ClockJump struct {
	At time.Time     // when it was noticed, by this host's clock
	By time.Duration // forward, or negative: backward; a little less than the truth
}

// sighting is one look at the database's clock: its offset against ours, which
// is not known more exactly than the look took.
type sighting struct {
	least, most time.Duration
	at, last    time.Time // last is the look itself
}

// rest lets nothing be rescued for so long, or for one lease if that is less.
func (r *rescue) rest(now time.Time, length time.Duration) {
	if r.length > 0 {
		length = min(length, r.length)
	}
	if until := now.Add(length); until.After(r.notUntil) {
		r.notUntil = until
	}
}
