package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Store is the queue. It is safe for concurrent use.
type Store struct {
	tables *tables.Tables
	mode   tables.Mode

	// claiming lets one claimer in at a time, see claim.go: what follows is its.
	claiming  chan struct{}
	lanes     map[scanCursorKey]*scanCursor
	classes   map[string]*classes
	deferred  map[string][]int64
	inDoubt   map[int64]inDoubtClaim // unclear claims, by row: see in_doubt.go
	contended int                    // claims for which others are expected: see claimWithLock
	permits   map[string]int         // types whose permit rows were made

	compound     database.Compound
	oneStatement atomic.Bool // a plain settlement may be one: see settle_plain.go
	packets      sender      // nil where the server gets none

	mu       sync.Mutex        // never held while the database is asked
	unclear  map[string]bool   // settlements whose answer was lost, by lease
	tried    map[int64][]int64 // what unanswered renewals may have written, by row
	delays   delays            // see pending.go
	enqueues *groupcommit.Group[*enqueueRequest]
}

// A lane is what is claimed in one order: a queue of a stock table, or one
// class of priority in a queue of an extended one.
//
// Its head is a floor that moves past rows which were claimed, or found to be
// another's, so that no claim steps twice over PHP's rows, delayed rows or
// deleted rows that the server has not purged. What appears below the floor (a
// late commit, a retried or ripened row, a lease that ran out) is found by
// sweeps from the start, which come as often as they are cheap. Where many rows
// of others make them dear, pending finds what falls due at a known time.
type scanCursor struct {
	queue    string
	priority int

	lowWater  tables.RowPosition
	exhausted bool // the last look at the head found nothing more

	rescanning bool
	rescan     tables.RowPosition // how far this sweep is
	rescanEnd  tables.RowPosition // zero: to the end
	cost       time.Duration
	next       time.Time // of Options.Clock: no sweep before it
	pages      int       // that this sweep has read

	headPage, sweepPage  pageSize
	fromHead, fromRescan prefetched // of the head, and of the sweep

	// long says that sweeps read too much to come often: pending has the rows
	// that fall due in the meantime.
	long    bool
	pending pending
	// looking and looked are of a claim that must see the whole lane.
	looking, looked bool
}

// prefetched are candidates that the last look found and the claim had no room for: the next claim need not look. They are stale, which the claim's
// compare-and-set sees, and they keep the lane's order, as what comes later
// stands behind them.
type prefetched struct {
	rows []*tables.Candidate
	now  int64     // of the database, when they were read
	read time.Time // of Options.Clock
}

type scanCursorKey struct {
	queue    string
	priority int
}

// classes are the priorities that wait in a queue of an extended table,
// highest first.
type classes struct {
	priorities []int
	next       time.Time // when they are read again
	expired    time.Time // when lost leases are looked for again
	lost       int64     // how far this look for them is; 0 before the first row
	lostPage   pageSize
}

// pageSize is how many rows the next look of a lane reads; the zero value is
// smallPage.
type pageSize int

// pending are the rows of a stock table that cannot be claimed yet, and when
// they can be: running jobs at the end of their leases, delayed and repeated
// ones when they are due. Where sweeps are long, one statement finds them
// without reading payloads, and each is then looked at by its id in its second.
type pending struct {
	due  map[int64]falls
	next time.Time // of Options.Clock: when they are searched for again
	near bool      // only what is due soon: there are too many
}

// falls is when a row may be claimed.
type falls struct {
	at   time.Time // of Options.Clock
	once bool      // it is pending no more: one look, and it is forgotten
}

// delays are what this process knows of jobs that it gave back to run later.
// Store.mu guards them.
type delays struct {
	rows  map[string]map[int64]time.Time // by queue: when a row is due, of Options.Clock
	wakes map[string]map[time.Time]bool  // by queue: wake-ups that are set
}

// A claim whose COMMIT was not answered may hold its rows or not, and nobody
// runs what it holds. The store remembers it and gives such rows back
// uncounted, so that trouble of the database costs no attempt.
//
// In the extended layout the token in the row says whose it is. A stock row
// has no room for one: another worker that claimed it in the same second wrote
// the same. But such a worker renews its lease after a third of it, and stops
// the run after two thirds if it cannot; a row that looks the same after three
// quarters is ours.
type inDoubtClaim struct {
	row       *tables.Candidate
	token     string
	until     int64
	retryAt   time.Time // of Options.Clock: not given back before
	expiresAt time.Time // the lease has ended: its row is anybody's
}

// sender is what packets do.
type sender interface {
	Send(ctx context.Context, db *sqlx.DB, statements []string, args []any) ([]int64, error)
}
