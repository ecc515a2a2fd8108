package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// A block's first rows are claimed in the transaction that moves the cursor past it: a
// job of an idle queue costs one commit. The rows come first in it and the cursor last,
// so that nobody waits for the cursor while a claim waits for a row's lock.

// cursorMove is a move of the fleet's cursor, if it is still where it was.
type cursorMove struct {
	name     string
	from, to tables.RowPosition
}

// statement is the move as SQL.
func (m cursorMove) statement() (string, []any) {
	return "UPDATE cmsjobs_cursors SET at = ?, id = ? WHERE name = ? AND at = ? AND id = ?",
		[]any{m.to.At, m.to.ID, m.name, m.from.At, m.from.ID}
}

// takeBlock moves the cursor past a block and claims its first rows beside, as many as
// the claim wants and one statement can claim. rest is the block without them. Where
// nothing could be claimed, nothing was written.
func (c *claim) takeBlock(ctx context.Context, l *scanCursor, m cursorMove, x prefetched) (rest prefetched,
	moved bool, err error) {
	if !c.s.takesBlocks() {
		return x, false, nil
	}
	n := &next{claim: c, cursor: l, block: x}
	passed := n.choose(x, min(c.want(), c.s.tables.MaxBatch))
	if len(n.rows) == 0 {
		return x, false, nil
	}
	switch moved, err = c.s.takeAndMove(ctx, n, m); {
	case err == nil:
	case errors.Is(err, errShort), errors.Is(err, errContended), errors.Is(err, errRefused),
		database.Classify(err) == database.RetryTransaction:
		return x, false, nil
	case database.Classify(err).Unclear():
		c.s.recordInDoubt(c, n.rows, n.until)
		fallthrough
	default:
		return x, false, fmt.Errorf("claiming jobs with the move past them: %w", err)
	}
	for _, row := range n.won {
		c.taken = append(c.taken, c.claimed(row, nil, n.until))
	}
	return x.without(passed), moved, nil
}

// takesBlocks says that the server takes rows and cursor in one statement, or has one
// writer, who holds up everybody with any transaction: between two statements of a
// transaction nobody may be waited for.
func (s *Store) takesBlocks() bool {
	return s.tables.OwnDB == s.tables.DB && (s.oneStatement.Load() || s.tables.Dialect.OneWriter)
}

// takeAndMove claims rows, all or none, then moves the cursor, where m moves it. PostgreSQL
// claims those that it can, and moves the cursor only behind all of them.
func (s *Store) takeAndMove(ctx context.Context, n *next, m cursorMove) (moved bool, err error) {
	switch {
	case s.tables.Dialect.OneWriter:
		err = s.tables.InTx(ctx, "claiming jobs", func(t tables.Transaction) error {
			if err := s.compareAndSet(ctx, t.Main, n.rows, n.until, n.token); err != nil {
				return err
			}
			moved, err = s.moveCursor(ctx, t.Own, m)
			return err
		})
		n.wonAll()
		return moved, err
	case s.packets != nil:
		return s.takeOnMySQL(ctx, n, m)
	}
	statement, args := s.takeOnMariaDB(n, m)
	if s.compound == database.WritableCTE {
		statement, args = s.takeOnPostgres(n, m)
	}
	err = s.queryPlanned(ctx, func(what string, id int64) {
		if what == "moved" {
			moved = true
		} else {
			n.noteWon(id)
		}
	}, statement, args...)
	switch {
	case err != nil:
		return false, s.understood(err)
	case len(n.won) == 0:
		return false, errShort
	}
	return moved, nil
}

// takeOnPostgres answers with a row for each job that it claimed, one for the move, and the
// table's size.
func (s *Store) takeOnPostgres(n *next, m cursorMove) (string, []any) {
	taking, args := s.taking(n)
	if m.name == "" {
		return "WITH won AS (" + taking + " RETURNING id) SELECT 'claimed', id FROM won" + s.sizeOnPostgres(), args
	}
	moving, more := m.statement()
	return fmt.Sprintf("WITH won AS (%s RETURNING id), moved AS (%s AND (SELECT COUNT(*) FROM won) = %d RETURNING 1) "+
		"SELECT 'claimed', id FROM won UNION ALL SELECT 'moved', 0 FROM moved", taking, moving, len(n.rows)) +
		s.sizeOnPostgres(), slices.Concat(args, more)
}

// takeOnMariaDB answers with one row when it claimed the jobs, and with another when
// it moved the cursor.
func (s *Store) takeOnMariaDB(n *next, m cursorMove) (string, []any) {
	taking, args := s.taking(n)
	moving := ""
	if m.name != "" {
		statement, more := m.statement()
		moving, args = statement+"; SET moved = ROW_COUNT(); ", slices.Concat(args, more)
	}
	return "BEGIN NOT ATOMIC DECLARE moved INT DEFAULT 0; " + undoing + taking +
		fmt.Sprintf("; IF ROW_COUNT() = %d THEN ", len(n.rows)) + moving + "COMMIT; " +
		"SELECT 'claimed', 0 UNION ALL SELECT 'moved', 0 FROM DUAL WHERE moved > 0; ELSE ROLLBACK; END IF; END", args
}

// takeOnMySQL sends one packet. Its guard stops it before the cursor where a row was
// not to be had.
func (s *Store) takeOnMySQL(ctx context.Context, n *next, m cursorMove) (moved bool, err error) {
	taking, args := s.taking(n)
	statements := []string{"START TRANSACTION", taking, database.Guard("@claimed", "1", len(n.rows))}
	if m.name != "" {
		moving, more := m.statement()
		statements, args = append(statements, moving), slices.Concat(args, more)
	}
	s.tables.Asked.Add(1)
	found, err := s.packets.Send(ctx, s.tables.DB, append(statements, "COMMIT"), args)
	if err == nil {
		n.wonAll()
		return m.name != "" && found[3].Rows == 1, nil
	}
	return false, s.unsent(err)
}

// undoing begins a transaction in a block that undoes it and says why where it fails.
const undoing = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION; "

// crowdedFor is how long after another process was faster, or moved the cursor between two
// blocks of this one, blocks are taken by one statement. It is dearer than reading and
// moving, but is never in vain.
const crowdedFor = 5 * time.Second

// crowdedBlock takes a block where many processes want one: the server reads where the
// cursor is and moves it past the next rows, in one statement that no client can hold up.
// ok says that there was a block.
func (c *claim) crowdedBlock(ctx context.Context, l *scanCursor) (x prefetched, ok bool, err error) {
	s := c.s
	if l.headPage != 0 || s.tables.OrderedByTime() || !s.takesBlocks() || s.tables.Dialect.OneWriter {
		return x, false, nil
	}
	size, was := c.blockSize(), l.lowWater
	m, err := s.moveToNext(ctx, l, size)
	switch {
	case errors.Is(err, errRefused), database.Classify(err) == database.RetryTransaction:
		return x, false, nil
	case err != nil:
		return x, false, fmt.Errorf("taking the next block of jobs: %w", err)
	case m.from == m.to:
		return x, false, nil
	case m.from != was:
		l.crowded = s.tables.Options.Clock()
	}
	var whole pageSize
	x, more, err := c.page(ctx, s.tables.DB, &whole, size, func(limit int) tables.CandidateQuery {
		return s.between(l, m.from, m.to, s.tables.Layout.Waiting(), limit)
	})
	if err != nil {
		return x, false, err
	}
	if n := len(x.rows); more && n > 0 && x.rows[n-1].ID < m.to.ID { // it ended before a large payload
		if m.to, err = s.returnPart(ctx, m, s.positionOf(x.rows[n-1])); err != nil {
			return x, false, err
		}
	}
	l.newest, l.sparse = max(l.newest, m.to.ID), len(x.rows) < size/2
	return x, true, c.hold(ctx, l, m, x.rows)
}

// takeCrowded takes such a block and claims its first rows.
func (c *claim) takeCrowded(ctx context.Context, l *scanCursor) (x prefetched, ok bool, err error) {
	if x, ok, err = c.crowdedBlock(ctx, l); !ok || err != nil {
		return x, ok, err
	}
	x, _, err = c.takeBlock(ctx, l, cursorMove{}, x)
	return x, true, err
}

// returnPart sets the cursor back to what was read of a block, where nobody has read on.
func (s *Store) returnPart(ctx context.Context, m cursorMove, read tables.RowPosition) (tables.RowPosition, error) {
	if _, err := s.moveCursor(ctx, s.tables.OwnDB, cursorMove{m.name, m.to, read}); err != nil {
		return m.to, fmt.Errorf("returning a part of a block: %w", err)
	}
	return read, nil
}

// moveToNext moves the cursor past the queue's next rows, so many at most, wherever it
// is: the server finds them in an index alone, as all others wait for it. Where few of
// the last block's rows waited, only those that wait are counted, which reads each row.
// The move's ends are equal where there are none.
func (s *Store) moveToNext(ctx context.Context, l *scanCursor, size int) (m cursorMove, err error) {
	m.name = l.name
	waiting := ""
	if l.sparse {
		waiting = " AND " + s.tables.Layout.Waiting()
	}
	next := func(into, after string) string {
		return "SELECT MAX(id) " + into + " FROM (SELECT id FROM " + s.tables.Layout.Table().Name +
			s.tables.IndexHint() + " WHERE queue = ?" + s.tables.Layout.Class(l.priority) + " AND id > " + after +
			waiting + s.tables.OrderBy() + fmt.Sprintf(" LIMIT %d) AS block", size)
	}
	if s.packets != nil {
		return s.moveOnMySQL(ctx, l, next("", "LAST_INSERT_ID()"))
	}
	statement, args := moveOnMariaDB(next("INTO next_block", "last_block")), []any{l.name, l.queue, l.name}
	if s.compound == database.WritableCTE {
		statement = moveOnPostgres(next("AS id", "(SELECT id FROM here)"))
		args = append([]any{l.name}, args...)
	}
	_, err = s.tables.QueryRow(ctx, s.tables.DB, []any{&m.from.ID, &m.to.ID}, statement, args...)
	return m, s.understood(err)
}

// moveOnMySQL sends one packet.
func (s *Store) moveOnMySQL(ctx context.Context, l *scanCursor, next string) (m cursorMove, err error) {
	s.tables.Asked.Add(1)
	found, err := s.packets.Send(ctx, s.tables.DB, []string{"START TRANSACTION",
		"UPDATE cmsjobs_cursors SET id = LAST_INSERT_ID(id) WHERE name = ?",
		"SET @cmsjobs_next = (" + next + ")",
		"UPDATE cmsjobs_cursors SET id = LAST_INSERT_ID(COALESCE(@cmsjobs_next, id)) WHERE name = ?", "COMMIT"},
		[]any{l.name, l.queue, l.name})
	if err != nil {
		return m, s.unsent(err)
	}
	return cursorMove{l.name, tables.RowPosition{ID: found[1].ID}, tables.RowPosition{ID: found[3].ID}}, nil
}

// moveOnMariaDB answers with where the cursor was and where it is.
func moveOnMariaDB(next string) string {
	return "BEGIN NOT ATOMIC DECLARE last_block, next_block BIGINT; " + undoing +
		"SELECT id INTO last_block FROM cmsjobs_cursors WHERE name = ? FOR UPDATE; " + next +
		"; IF next_block IS NULL THEN ROLLBACK; ELSE UPDATE cmsjobs_cursors SET id = next_block WHERE name = ?; " +
		"COMMIT; END IF; SELECT COALESCE(last_block, 0), COALESCE(next_block, last_block, 0); END"
}

// moveOnPostgres answers so, too. Who waits for the row itself looks for its newest version,
// as all others do, each time that one of them has moved it. So they stand in line before it.
func moveOnPostgres(next string) string {
	return "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended(?, 0)) AS won), " +
		"here AS MATERIALIZED (SELECT id FROM cmsjobs_cursors, turn WHERE name = ? AND won IS NOT NULL " +
		"FOR UPDATE OF cmsjobs_cursors), " +
		"there AS MATERIALIZED (" + next + "), " +
		"moved AS (UPDATE cmsjobs_cursors SET id = there.id FROM there WHERE name = ? AND there.id IS NOT NULL " +
		"RETURNING 1) " +
		"SELECT here.id, COALESCE(there.id, here.id) FROM here, there, (SELECT COUNT(*) FROM moved) AS done"
}

// unsent says of a packet's error whether its statements may go one by one.
func (s *Store) unsent(err error) error {
	switch {
	case errors.Is(err, database.ErrShortPacket):
		return errShort
	case errors.Is(err, database.ErrUnsent):
		if errors.Is(err, database.ErrNoPackets) {
			s.oneStatement.Store(false)
		}
		return errors.Join(errRefused, err)
	}
	return s.understood(err)
}
