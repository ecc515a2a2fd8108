package queue

import (
	"errors"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// pendingSettlement is a settlement on its way into the tables.
type pendingSettlement struct {
	*jobs.Settlement
	index int  // in the caller's list
	bare  bool // without what the database may have refused
}

// gone says that the job's row is deleted.
func (e pendingSettlement) gone() bool {
	return e.Outcome != jobs.Retried && e.Outcome != jobs.Released
}

// idsOf lists the row ids of ends and of their duplicates.
func idsOf(ends []pendingSettlement, which func(pendingSettlement) bool) []int64 {
	var list []int64
	for _, e := range ends {
		if !which(e) {
			continue
		}
		list = append(list, e.Claimed.Lease.ID)
		for _, duplicate := range e.Claimed.Duplicates {
			list = append(list, duplicate.ID)
		}
	}
	return list
}

// plainEnd is what one round trip writes.
type plainEnd struct {
	drop  *guardedUpdate
	lines []tables.RunRow
	next  *next // claimed along, or nil
}

// next are the candidates that a settlement claims in its own transaction. All of
// them are in the same state, so that one statement takes them.
type next struct {
	*claim
	rows  []*tables.Candidate
	until int64
	byID  map[int64]*tables.Candidate // rows, once the server names some
	won   []*tables.Candidate         // of rows: usually all; none where another worker was faster with one
	// chosen are the rows, also when the claim is dropped; block is where they come
	// from, of cursor.
	chosen []*tables.Candidate
	block  prefetched
	cursor *scanCursor
}

// wonAll notes that the claim got every row.
func (n *next) wonAll() { n.won = n.rows }

// drop takes the claim out of the settlement: it was not made.
func (n *next) drop() { n.rows, n.won = nil, nil }

// errShort says that fewer rows than named were still held: the transaction is
// undone and split, until those that were lost stand alone.
var errShort = errors.New("a lease in the batch is lost")

// errRefused says that the statement was not understood and did nothing.
var errRefused = errors.New("the server does not take this as one statement")

// guardedUpdate is one statement on leases that share their condition.
type guardedUpdate struct {
	verb string // "DELETE FROM t" or "UPDATE t SET …"
	args []any
	cond string
	more []any
	ids  []int64
}

// statement is the change as SQL.
func (g *guardedUpdate) statement(d database.Dialect) (string, []any) {
	in, inArgs := d.IDRanges(g.ids)
	return g.verb + " WHERE " + in + " AND " + g.cond, slices.Concat(g.args, inArgs, g.more)
}
