package queue

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// All processes read a queue behind one cursor, a row of cmsjobs_cursors. A claim
// reads a block of candidates behind it, and moves it past them, if it is still
// where it was: so nobody else has these rows, and nobody tries in vain to claim
// them. The block belongs to the process for prefetchTTL. What it has not claimed by
// then, or what it leaves behind when it dies, is found by a rescan.
//
// No lock of a process lasts longer than one statement: one that is stopped, or cut
// off from the server, keeps nobody waiting.
//
// The cursor only saves work. Lost, set back or too far, rows are read again, and
// the compare-and-set of the claim decides whose they are.

// undisturbedAge is how long after the cursor passed a row the row is in no
// process's block any more.
const undisturbedAge = prefetchTTL + 50*time.Millisecond

// maxBlock bounds a block, unless the claim itself wants more: what a process has in
// its block, jobs behind it overtake. The pace bounds it first (ClaimRequest.Soon).
const maxBlock = 256

// sightingStep is the time between two notes of where the cursor is.
const sightingStep = 50 * time.Millisecond

// sight notes where the cursor is.
func (l *scanCursor) sight(pos tables.RowPosition, now time.Time) {
	if pos != l.lowWater || len(l.sightings) == 0 {
		l.sightedAt = now
	}
	l.lowWater = pos
	if n := len(l.sightings); n == 0 || now.Sub(l.sightings[n-1].at) >= sightingStep {
		l.sightings = append(l.sightings, cursorSighting{now, pos})
	}
	l.forgetSightings(now)
}

// forgetSightings keeps the newest sighting that is old enough, and those after it.
func (l *scanCursor) forgetSightings(now time.Time) {
	for len(l.sightings) > 1 && now.Sub(l.sightings[1].at) >= undisturbedAge {
		l.sightings = l.sightings[1:]
	}
}

// undisturbed is up to where rows are in no process's block; zero where that is
// not known.
func (l *scanCursor) undisturbed(now time.Time) tables.RowPosition {
	if len(l.sightings) > 0 && now.Sub(l.sightedAt) >= undisturbedAge {
		return l.lowWater
	}
	l.forgetSightings(now)
	if len(l.sightings) == 0 || now.Sub(l.sightings[0].at) < undisturbedAge {
		return tables.RowPosition{}
	}
	return l.sightings[0].pos
}

// cursorName names the row of a scan cursor: the table, the types, the order, the
// priority and the queue. Only processes that run the same types share a cursor: what
// one has no handler for, it passes over.
func (s *Store) cursorName(key scanCursorKey) string {
	order := "id"
	if s.tables.OrderedByTime() {
		order = "due"
	}
	types := sha256.Sum256([]byte(strings.Join(s.tables.Options.Registry.Names(), "\n")))
	name := fmt.Sprintf("%s/%x/%s/%d/%s", s.tables.Layout.Table().Plain, types[:8], order, key.priority, key.queue)
	if len(name) > 191 {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name
}

// PruneCursors removes the cursors that no process has used for so long: of types,
// queues and priorities that are gone. A process that uses one again reads from the
// first row.
func (s *Store) PruneCursors(ctx context.Context, age time.Duration) error {
	now, err := s.tables.Now(ctx)
	if err != nil {
		return fmt.Errorf("asking the database for the time: %w", err)
	}
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_cursors WHERE rescan_until < ?",
		now.Add(-age).UnixMilli()); err != nil {
		return fmt.Errorf("removing cursors that nobody uses any more: %w", err)
	}
	return nil
}

// blockTries is how often a process reads a block that another one was faster with.
// Then it tries to claim what it has read: the compare-and-set sees what is taken.
const blockTries = 8

// nextBlock takes the next candidates for this process alone, and claims the first of
// them where one statement can. x has the others; more says that rows may stand behind
// them.
func (c *claim) nextBlock(ctx context.Context, l *scanCursor) (x prefetched, more bool, err error) {
	if c.s.tables.Options.Clock().Sub(l.crowded) < crowdedFor {
		if x, ok, err := c.takeCrowded(ctx, l); ok || err != nil {
			return x, true, err
		}
	}
	before := len(c.taken)
	x, more, moved, err := c.readAndMove(ctx, l, true)
	if err != nil || moved {
		return x, more, err
	}
	l.crowded = c.s.tables.Options.Clock()
	if len(c.taken) > before {
		return prefetched{}, true, nil // what was not claimed is another's
	}
	if x, ok, err := c.takeCrowded(ctx, l); ok || err != nil {
		return x, true, err
	}
	for try := 2; try <= blockTries; try++ {
		if x, more, moved, err = c.readAndMove(ctx, l, false); err != nil || moved {
			break
		}
	}
	return x, more, err
}

// blockAhead takes the next candidates for this process alone, and claims none of them.
// Where another process is faster it has none.
func (c *claim) blockAhead(ctx context.Context, l *scanCursor) (x prefetched, more bool, err error) {
	if c.s.tables.Options.Clock().Sub(l.crowded) < crowdedFor {
		if x, ok, err := c.crowdedBlock(ctx, l); ok || err != nil {
			return x, true, err
		}
	}
	x, more, moved, err := c.readAndMove(ctx, l, false)
	if err == nil && !moved {
		l.crowded = c.s.tables.Options.Clock()
		return prefetched{}, true, nil
	}
	return x, more, err
}

// readAndMove reads a block and moves the cursor past it; take says that its first rows
// are claimed beside. In vain, another has the rows, or a lock on them: then the cursor
// goes first.
func (c *claim) readAndMove(ctx context.Context, l *scanCursor, take bool) (x prefetched, more, moved bool,
	err error) {
	read, m, more, err := c.readBlock(ctx, l, c.heard && take)
	if err != nil {
		return prefetched{}, false, false, err
	}
	x = read
	if before := len(c.taken); take {
		if x, moved, err = c.takeBlock(ctx, l, m, read); err != nil || !moved && len(c.taken) > before {
			return prefetched{}, false, false, err
		}
	}
	if !moved {
		if moved, err = c.s.moveCursor(ctx, c.s.tables.OwnDB, m); err != nil {
			return prefetched{}, false, false, fmt.Errorf("taking a block of jobs: %w", err)
		}
	}
	if !moved {
		return x, more, false, nil
	}
	return x, more, true, c.hold(ctx, l, m, read.rows)
}

// blockSize is how many candidates a block has at most.
func (c *claim) blockSize() int { return max(c.want(), min(c.want()+c.r.Soon, maxBlock)) }

// hold notes that the cursor was moved past a block of this process.
func (c *claim) hold(ctx context.Context, l *scanCursor, m cursorMove, rows []*tables.Candidate) error {
	l.blockEnd = m.to
	l.sight(m.to, c.s.tables.Options.Clock())
	return c.noteMissing(ctx, l, m, rows)
}

// readBlock reads where the cursor is, and candidates behind it up to the queue's last
// row. m is the move past them. Of an idle queue one statement reads both: behind where
// the cursor was last seen, and nobody has moved it since, or there is nothing left.
func (c *claim) readBlock(ctx context.Context, l *scanCursor, idle bool) (x prefetched, m cursorMove, more bool,
	err error) {
	size, at, done := c.blockSize(), tables.Cursor{}, false
	if idle && len(l.sightings) > 0 && c.s.tables.OwnDB == c.s.tables.DB {
		if x, more, done, err = c.readBesideCursor(ctx, l, size, &at); err != nil {
			return x, m, false, err
		}
	}
	if !at.Found {
		if at, err = c.s.readCursor(ctx, l); err != nil {
			return x, m, false, err
		}
	}
	l.sight(at.Is, c.s.tables.Options.Clock())
	l.newest = max(l.newest, at.Newest, at.Is.ID)
	if m = (cursorMove{l.name, at.Is, at.Is}); at.Last != 0 && at.Last <= at.Is.ID {
		return prefetched{}, m, false, nil // nothing is behind it
	}
	if !done {
		x, more, err = c.page(ctx, c.s.tables.DB, &l.headPage, size, func(limit int) tables.CandidateQuery {
			return c.s.between(l, at.Is, tables.RowPosition{ID: at.Last}, c.s.tables.Layout.Waiting(), limit)
		})
	}
	if n := c.firstOurs(l, x.rows, size); n < len(x.rows) {
		x.rows, more = x.rows[:n], true
	}
	if len(x.rows) > 0 {
		m.to = c.s.positionOf(x.rows[len(x.rows)-1])
	}
	if !more && at.Last > 0 { // by id: delayed rows are behind the cursor now
		m.to.ID = at.Last
	}
	return x, m, more, err
}

// readBesideCursor reads the cursor, and the candidates behind where it was last seen.
// done says that those behind where it is are among them.
func (c *claim) readBesideCursor(ctx context.Context, l *scanCursor, size int, at *tables.Cursor) (x prefetched,
	more, done bool, err error) {
	at.Name, at.Queue, at.Known = l.name, l.queue, l.newest
	x, more, err = c.page(ctx, c.s.tables.DB, &l.headPage, size, func(limit int) tables.CandidateQuery {
		q := c.s.between(l, l.lowWater, tables.RowPosition{}, c.s.tables.Layout.Waiting(), limit)
		q.Cursor = at
		return q
	})
	x.rows = slices.DeleteFunc(x.rows, func(row *tables.Candidate) bool {
		return !c.s.isBefore(at.Is, c.s.positionOf(row))
	})
	return x, more, at.Found && !c.s.isBefore(at.Is, l.lowWater) && (len(x.rows) > 0 || !more), err
}

// firstOurs is up to where rows have as many of ours as a block: a page may be large
// to get past other programs' rows.
func (c *claim) firstOurs(l *scanCursor, rows []*tables.Candidate, size int) int {
	for i := 0; len(rows) > size && i < len(rows); i++ {
		if c.s.tables.Claimable(l.queue, rows[i]) {
			size--
		}
		if size == 0 {
			return i + 1
		}
	}
	return len(rows)
}

// positionOf is a row's place in the order of claims.
func (s *Store) positionOf(x *tables.Candidate) tables.RowPosition {
	if s.tables.OrderedByTime() {
		return tables.RowPosition{At: x.At, ID: x.ID}
	}
	return tables.RowPosition{ID: x.ID}
}

// returnBlock sets the cursor back to what this process has not claimed of its
// block in time. Where somebody has read on since, this claim looks for it once more by
// its numbers, and after that a rescan finds it.
func (c *claim) returnBlock(ctx context.Context, l *scanCursor) error {
	if len(l.fromHead.rows) == 0 || c.s.tables.Options.Clock().Sub(l.fromHead.read) <= prefetchTTL {
		return nil
	}
	unused := l.fromHead.rows
	before := c.s.positionOf(unused[0])
	before.ID--
	l.fromHead = prefetched{}
	moved, err := c.s.moveCursor(ctx, c.s.tables.OwnDB, cursorMove{l.name, l.blockEnd, before})
	if err != nil {
		return fmt.Errorf("returning a block of jobs: %w", err)
	}
	if !moved && c.s.tables.Layout.Name() == tables.Stock {
		for _, row := range unused {
			if c.s.tables.Claimable(l.queue, row) {
				l.pending.add(row.ID, falls{at: c.s.tables.Options.Clock(), tries: 1})
			}
		}
	}
	l.exhausted = false
	return nil
}

// readAgain sets the cursor back where half of a page of a rescan are jobs that only
// wait, and more than this process wants: many were released, or fell due together.
// Then blocks share them out.
func (c *claim) readAgain(ctx context.Context, l *scanCursor, x prefetched) (back bool, err error) {
	var plain []*tables.Candidate
	for _, row := range x.rows {
		if c.s.tables.Claimable(l.queue, row) && simple(row) {
			plain = append(plain, row)
		}
	}
	if l.looking || len(plain) < max(smallPage, c.want()) || 2*len(plain) < len(x.rows) {
		return false, nil
	}
	before := c.s.positionOf(plain[0])
	before.ID--
	if err := c.setBack(ctx, l, before); err != nil {
		return false, err
	}
	l.rescanning, l.rescanEnd = false, tables.RowPosition{ID: -1} // not all was seen
	l.next = c.s.tables.Options.Clock().Add(max(rescanShare*l.cost, rescanInterval))
	return true, nil
}

// setBack moves the cursor back to a position.
func (c *claim) setBack(ctx context.Context, l *scanCursor, to tables.RowPosition) error {
	at, err := c.s.readCursor(ctx, l)
	if err == nil && c.s.isBefore(to, at.Is) {
		_, err = c.s.moveCursor(ctx, c.s.tables.OwnDB, cursorMove{l.name, at.Is, to})
	}
	if err != nil {
		return fmt.Errorf("reading jobs again: %w", err)
	}
	l.exhausted, l.newest = false, 0
	return nil
}

// noteAhead sets the cursor back where a rescan found a job that was enqueued behind
// every other and yet stands before the cursor: a restored or emptied table counts
// from a lower number again, or the database's clock was set back.
func (c *claim) noteAhead(ctx context.Context, l *scanCursor, x prefetched) error {
	for _, row := range x.rows {
		byTime := c.s.tables.OrderedByTime()
		if row.Attempts > 0 || byTime && row.Due < x.now-1 || !byTime && row.Due > row.Created ||
			!c.s.tables.Claimable(l.queue, row) {
			continue
		}
		at, err := c.s.readCursorAndLast(ctx, l)
		switch {
		case err != nil:
			return err
		case !byTime && at.Last < at.Is.ID:
			return c.setBack(ctx, l, tables.RowPosition{ID: max(at.Last, 0)})
		case byTime && row.At < at.Is.At:
			return c.setBack(ctx, l, c.s.positionOf(row))
		}
		return nil
	}
	return nil
}

// isBefore compares positions in the order of claims. Their times are texts of one
// length.
func (s *Store) isBefore(a, b tables.RowPosition) bool {
	if s.tables.OrderedByTime() && a.At != b.At {
		return a.At < b.At
	}
	return a.ID < b.ID
}

// missingTries are when a number is looked for that was missing in a block: its
// row may be committed later than those behind it. After that a rescan finds it.
var missingTries = [...]time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 400 * time.Millisecond}

// maxMissing bounds how far back in a block missing numbers are looked for.
const maxMissing = 512

// noteMissing remembers the numbers between two positions that no row has.
func (c *claim) noteMissing(ctx context.Context, l *scanCursor, m cursorMove, rows []*tables.Candidate) error {
	from, to := m.from, m.to
	if c.s.tables.OrderedByTime() || from.ID == 0 || to.ID-from.ID <= int64(len(rows)) {
		return nil
	}
	first := max(from.ID, to.ID-maxMissing)
	there := map[int64]bool{}
	if err := c.s.tables.Query(ctx, c.s.tables.DB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		there[id] = true
		return err
	}, fmt.Sprintf("SELECT id FROM %s WHERE id > %d AND id <= %d", c.s.tables.Layout.Table().Name, first,
		to.ID)); err != nil {
		return fmt.Errorf("looking for jobs that come late: %w", err)
	}
	at := c.s.tables.Options.Clock().Add(missingTries[0])
	noted := false
	for id := first + 1; id <= to.ID; id++ {
		if !there[id] && l.pending.add(id, falls{at: at, missing: len(missingTries)}) {
			noted = true
		}
	}
	if noted {
		c.s.wakeAt(l.queue, at)
	}
	return nil
}
