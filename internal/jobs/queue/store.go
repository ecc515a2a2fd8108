package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Store is the queue. It is safe for concurrent use.
type Store struct {
	tables *tables.Tables
	name   string // of this store among all processes, at random

	// claiming lets one claimer in at a time. The fields below it are its own.
	claiming chan struct{}
	cursors  map[scanCursorKey]*scanCursor
	classes  map[string]*classes
	emptied  map[string]emptyLook // by queue: see seenEmpty
	deferred map[string][]int64
	inDoubt  map[int64]inDoubtClaim // unclear claims, by row: see in_doubt.go
	permits  map[string]int         // types whose permit rows were made

	compound     database.Compound
	oneStatement atomic.Bool // a plain settlement may be one: see settle_plain.go
	plans        database.Plans
	packets      sender // nil where the server gets none
	renewals     *tables.Renewals

	mu       sync.Mutex        // never held while the database is asked
	unclear  map[string]bool   // settlements whose answer was lost, by lease
	delays   delays            // see pending.go
	arrivals map[string]uint64 // how often jobs were enqueued, by queue in lower case; "" is any queue
	sent     []sentRow         // rows that came with that news: see sent_rows.go
	enqueues *groupcommit.Group[*enqueueRequest]
}

// scanCursor is how far the claim has read in one order: in one queue of a stock
// table, or in one priority of a queue of an extended table.
//
// Its low-water mark moves past rows that were claimed, or found to be another
// program's. So no claim reads twice over PHP's rows, over delayed rows, or over
// deleted rows that the server has not purged yet.
//
// Some rows appear below the mark: a late commit, a retried job, a delayed job
// that falls due, a job whose lease ran out. A full rescan from the start finds
// them. Rescans come as often as they are cheap. Where many foreign rows make
// them expensive, pending finds what falls due at a known time.
type scanCursor struct {
	queue    string
	priority int
	name     string // of the fleet's cursor: see cursorName

	lowWater    tables.RowPosition // the fleet's cursor, when this process last saw it
	newest      int64              // the highest number that was seen in the table
	blockEnd    tables.RowPosition // of the block that fromHead is the rest of
	crowded     time.Time          // of Options.Clock: when another process was faster with a block
	sparse      bool               // few rows waited in the last block that the server took
	last        bool               // nothing stood behind the block when it was read
	exhausted   bool               // the last look above the mark found nothing more
	exhaustedAt time.Time          // of Options.Clock
	sightings   []cursorSighting   // of the mark, the oldest first: see undisturbed
	sightedAt   time.Time          // of Options.Clock: when it moved last, as far as was seen

	rescanning bool
	rescan     tables.RowPosition // how far this rescan is
	rescanEnd  tables.RowPosition // zero: to the end
	cost       time.Duration
	next       time.Time // of Options.Clock: no rescan before it
	rescansTo  time.Time // of Options.Clock: until then this process is the rescanner for sure
	rescanned  time.Time // of Options.Clock: when this process's last rescan ended
	pages      int       // that this rescan has read

	headPage, rescanPage pageSize
	fromHead, fromRescan prefetched // of the look above the mark, and of the rescan

	// long says that rescans read too much to come often: pending has the rows
	// that fall due in the meantime.
	long    bool
	pending pending

	// looking and looked belong to a claim that must see every row of the queue.
	looking, looked bool
}

// prefetched are candidates of the last look that its claim did not need: the
// next claim tries them first. They may be stale, which the compare-and-set sees.
// They stand in the cursor's order: what is read later comes after them.
type prefetched struct {
	rows []*tables.Candidate
	now  int64     // of the database, when they were read
	read time.Time // of Options.Clock
	// failed says that a claim of them beside an end failed: only a claim by itself,
	// which asks what is taken, tries them again.
	failed bool
}

// cursorSighting is where the fleet's cursor was at a time.
type cursorSighting struct {
	at  time.Time // of Options.Clock
	pos tables.RowPosition
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

// emptyLook is the last look at a queue that found nothing to claim.
type emptyLook struct {
	at       time.Time // when it began, of Options.Clock
	arrivals uint64    // that were known then
}

// pageSize is how many rows the next look reads; the zero value is smallPage.
type pageSize int

// pending are the rows of a stock table that cannot be claimed yet, and when they
// can be: running jobs when their leases end, delayed and retried jobs when they
// are due. Where rescans are long, one statement finds these rows without
// reading payloads. Each is then read by its id in the second in which it is due.
type pending struct {
	due  map[int64]falls
	next time.Time // of Options.Clock: when they are searched for again
	near bool      // only what is due soon: there are too many
}

// falls is when a row may be claimed.
type falls struct {
	at time.Time // of Options.Clock
	// tries counts how often it is read yet, pendingRest apart, and then forgotten; 0
	// means until a search says that it is pending no more.
	tries int
	// missing counts how often a row that was not there is looked for yet: see
	// missingTries.
	missing int
}

// delays are what this process knows of jobs that it released to run later.
// Store.mu guards them.
type delays struct {
	rows  map[string]map[int64]time.Time // by queue: when a row is due, of Options.Clock
	wakes map[string]map[time.Time]bool  // by queue: wake-ups that are set
}

// inDoubtClaim is a row of a claim whose COMMIT got no answer. The claim may hold
// the row or not, and no worker runs what it holds. The store remembers it and
// releases the row without counting the attempt: trouble of the database costs
// no attempt.
//
// In the extended layout the token in the row says whose it is. A stock row has
// no column for it: another worker that claimed the row in the same second wrote
// the same values. But such a worker renews its lease after a third of it, and
// stops the run after two thirds if it cannot. So a row that looks the same
// after three quarters of the lease is ours.
type inDoubtClaim struct {
	row       *tables.Candidate
	token     string
	until     int64
	retryAt   time.Time // of Options.Clock: not released before
	expiresAt time.Time // the lease has ended: its row is anybody's
}

// sender is what packets do.
type sender interface {
	Send(ctx context.Context, db *sqlx.DB, statements []string, args []any) ([]database.Sent, error)
}

// claim is one call of Claim.
type claim struct {
	s           *Store
	r           jobs.ClaimRequest
	token       string
	freePermits map[string]int // permits that are left of each set, read once
	taken       []jobs.Claimed
	pages       int
	absorbed    map[int64]bool // rows that were taken as duplicates
	// unseen says that the claim ended at its bounds before it saw all rows,
	// stopped that it ended before a job that must wait for a free slot.
	unseen, stopped bool
	aheadBytes      int64 // of payloads that were chosen ahead of a free slot
	beaten          bool  // another process was faster with a row: a larger page would be in vain, too
	heard           bool  // a job came to the queue since a look found nothing in it
}

func (s *Store) newClaim(r jobs.ClaimRequest) *claim {
	return &claim{s: s, r: r, token: tables.NewToken(r.Worker), freePermits: map[string]int{},
		absorbed: map[int64]bool{}}
}

func (c *claim) want() int { return c.r.Limit - len(c.taken) }

// wantNow is how many of them have a free slot.
func (c *claim) wantNow() int { return max(c.want()-c.r.Ahead, 0) }

// maxPages bounds how many pages of other programs' rows one claim reads. The next
// claim goes on behind them, at once (jobs.ErrUnseen).
const maxPages = 20

// full says that the claim has what it wants, or is at its bounds.
func (c *claim) full() bool {
	if c.want() <= 0 || c.stopped {
		return true
	}
	if c.pages >= maxPages {
		c.unseen = true
		return true
	}
	return false
}

// enqueueRequest is one caller's list.
type enqueueRequest struct {
	list     []jobs.Spec
	receipts []jobs.Receipt
}
