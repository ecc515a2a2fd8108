package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

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

// takeAndMove claims rows, all or none, then moves the cursor. PostgreSQL claims those
// that it can, and moves the cursor only behind all of them.
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
	err = s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var what string
		var id int64
		if err := r.Scan(&what, &id); err != nil {
			return err
		}
		if what == "moved" {
			moved = true
		} else {
			n.noteWon(id)
		}
		return nil
	}, statement, args...)
	switch {
	case err != nil:
		return false, s.understood(err)
	case len(n.won) == 0:
		return false, errShort
	}
	return moved, nil
}

// takeOnPostgres answers with a row for each job that it claimed, and one for the move.
func (s *Store) takeOnPostgres(n *next, m cursorMove) (string, []any) {
	taking, args := s.taking(n)
	moving, more := m.statement()
	return fmt.Sprintf("WITH won AS (%s RETURNING id), moved AS (%s AND (SELECT COUNT(*) FROM won) = %d RETURNING 1) "+
			"SELECT 'claimed', id FROM won UNION ALL SELECT 'moved', 0 FROM moved", taking, moving, len(n.rows)),
		slices.Concat(args, more)
}

// takeOnMariaDB answers with one row when it claimed the jobs, and with another when
// it moved the cursor.
func (s *Store) takeOnMariaDB(n *next, m cursorMove) (string, []any) {
	taking, args := s.taking(n)
	moving, more := m.statement()
	return "BEGIN NOT ATOMIC DECLARE moved INT DEFAULT 0; " +
			"DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION; " + taking +
			fmt.Sprintf("; IF ROW_COUNT() = %d THEN ", len(n.rows)) + moving + "; SET moved = ROW_COUNT(); COMMIT; " +
			"SELECT 'claimed', 0 UNION ALL SELECT 'moved', 0 FROM DUAL WHERE moved > 0; ELSE ROLLBACK; END IF; END",
		slices.Concat(args, more)
}

// takeOnMySQL sends one packet. Its guard stops it before the cursor where a row was
// not to be had.
func (s *Store) takeOnMySQL(ctx context.Context, n *next, m cursorMove) (moved bool, err error) {
	taking, args := s.taking(n)
	moving, more := m.statement()
	s.tables.Asked.Add(1)
	found, err := s.packets.Send(ctx, s.tables.DB, []string{"START TRANSACTION", taking,
		database.Guard("@claimed", "1", len(n.rows)), moving, "COMMIT"}, slices.Concat(args, more))
	if err == nil {
		n.wonAll()
		return found[3] == 1, nil
	}
	return false, s.unsent(err)
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
