package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Settling takes six round trips: BEGIN, DELETE, two questions, INSERT, COMMIT.
// MariaDB and PostgreSQL take the usual case, jobs that are done and leave
// nothing but their lines of history, as one statement that does the same in
// the same order: without the leases nothing is written. MySQL takes it as
// several statements in one packet (onMySQL).

// plainly makes that statement. ok is false where the ends need more.
func (s *Store) plainly(ends []pendingSettlement, n *next) (x plainEnd, ok bool) {
	if s.tables.OwnDB != s.tables.DB || !s.oneStatement.Load() {
		return x, false
	}
	for _, e := range ends {
		entry, known := s.tables.Options.Registry.Lookup(e.Claimed.Job.Type)
		if !known || entry.Policy.Limit > 0 || e.Outcome != jobs.Completed || len(e.Claimed.Duplicates)+
			len(e.FollowUps)+len(e.Lines) > 0 {
			return x, false
		}
	}
	groups := s.changes(ends)
	if len(groups) > 1 {
		return x, false
	}
	x = plainEnd{next: n, drop: groups[0], lines: make([]tables.RunRow, len(ends))}
	for i, e := range ends {
		row := s.runOf(e)
		x.lines[i] = s.tables.RowOf(&row)
	}
	return x, s.tables.Fitting(x.lines) == len(x.lines)
}

// finish writes a plain end and says which rows it settled. MariaDB and MySQL
// settle all of them or, with errShort, none; PostgreSQL those whose lease holds.
func (s *Store) finish(ctx context.Context, x plainEnd) ([]int64, error) {
	if s.packets != nil {
		return s.onMySQL(ctx, x)
	}
	write := s.onMariaDB
	if s.compound == database.WritableCTE {
		write = s.onPostgres
	}
	var settled []int64
	if x.next != nil {
		x.next.won = nil // of a try that was undone
	}
	answered := false
	statement, args := write(x)
	err := s.queryPlanned(ctx, func(what string, id int64) {
		answered = true
		if what == "settled" {
			settled = append(settled, id)
		} else if x.next != nil {
			x.next.noteWon(id)
		}
	}, statement, args...)
	if err != nil {
		return nil, s.understood(err)
	}
	if s.compound == database.WritableCTE {
		return settled, nil
	}
	if !answered {
		return nil, errShort
	}
	return x.drop.ids, nil
}

// queryPlanned asks a statement that answers with what happened to which job. PostgreSQL keeps
// its plan: it gets jobs as arrays, so the text is the same for any number of them.
func (s *Store) queryPlanned(ctx context.Context, happened func(what string, id int64), statement string,
	args ...any) error {
	rows, size := 0, int64(0)
	answer := func(r *sql.Rows) error {
		var what string
		var n int64
		err := r.Scan(&what, &n)
		switch {
		case err != nil:
		case what == "size":
			size = n
		default:
			rows++
			happened(what, n)
		}
		return err
	}
	if s.compound == database.WritableCTE {
		if kept, with, ok := s.plans.Of(statement, args); ok {
			err := s.tables.Query(ctx, s.tables.DB, answer, kept, with...)
			if err == nil && rows > 0 { // else the table may be empty
				s.plans.Saw(size)
			}
			if !database.Unplanned(err) {
				return err
			}
			s.plans.Refuse()
		}
	}
	return s.tables.Query(ctx, s.tables.DB, answer, statement, args...)
}

// sizeOnPostgres is the row of an answer that says how large the jobs' table is: see database.Plans.
func (s *Store) sizeOnPostgres() string {
	name := strings.ReplaceAll(s.tables.Layout.Table().Name, "'", "''")
	return " UNION ALL SELECT 'size', pg_relation_size('" + name + "')"
}

// understood notes a server, or something between us and it, that refuses our
// compound statements: they are not tried again.
func (s *Store) understood(err error) error {
	if database.Classify(err) == database.Other {
		s.oneStatement.Store(false)
		return errors.Join(errRefused, err)
	}
	return err
}

// onPostgres answers with a row for each job that it settled or claimed, and the table's size.
func (s *Store) onPostgres(x plainEnd) (string, []any) {
	drop, args := x.drop.statement(s.tables.Dialect)
	insertion, more := tables.ArrayInsertion(x.lines, s.tables.MillisNow(), "gone")
	with := "WITH gone AS (" + drop + " RETURNING id), freed AS (DELETE FROM cmsjobs_unique WHERE job_id IN (SELECT " +
		"id FROM gone)), ended AS (" + insertion + " RETURNING job_id)"
	answer := " SELECT 'settled', job_id FROM ended"
	args = append(args, more...)
	if x.next != nil {
		taking, more := s.taking(x.next)
		with += ", won AS (" + taking + " AND EXISTS (SELECT 1 FROM gone) RETURNING id)"
		answer += " UNION ALL SELECT 'claimed', id FROM won"
		args = append(args, more...)
	}
	return with + answer + s.sizeOnPostgres(), args
}

// onMariaDB answers with one row when it settled the jobs, which says whether it claimed
// the next ones. Whether there are unique keys at all is asked for many jobs only.
func (s *Store) onMariaDB(x plainEnd) (string, []any) {
	drop, args := x.drop.statement(s.tables.Dialect)
	insertions, more := s.tables.FewInsertions(x.lines, "moment")
	args = append(args, more...)
	free, _ := s.tables.Dialect.In("job_id", x.drop.ids)
	freeing := "DELETE FROM cmsjobs_unique WHERE " + free
	if len(x.drop.ids) > 1 {
		freeing = "IF EXISTS (SELECT 1 FROM cmsjobs_unique) THEN " + freeing + "; END IF"
	}
	taking, answer := "", "SELECT 'settled', 1"
	if x.next != nil {
		taking, more = s.taking(x.next)
		taking = allOrNone(taking, len(x.next.rows))
		answer = "SELECT IF(taken > 0, 'claimed', 'settled'), 0"
		args = append(args, more...)
	}
	return "BEGIN NOT ATOMIC DECLARE moment BIGINT DEFAULT " + s.tables.MillisNow() +
		"; DECLARE taken INT DEFAULT 0; " + undoing +
		drop + fmt.Sprintf("; IF ROW_COUNT() = %d THEN ", len(x.drop.ids)) + strings.Join(insertions, "; ") +
		"; " + freeing + "; " +
		taking + "COMMIT; " +
		answer + "; ELSE ROLLBACK; END IF; END", args
}

// allOrNone is a claim of n rows within onMariaDB: where one is not to be had,
// none is taken, as the count does not say which.
func allOrNone(taking string, n int) string {
	if n == 1 {
		return taking + "; SET taken = ROW_COUNT(); "
	}
	return "SAVEPOINT claiming; " + taking + "; SET taken = ROW_COUNT(); " +
		fmt.Sprintf("IF taken <> %d THEN ROLLBACK TO claiming; SET taken = 0; END IF; ", n)
}

// settleTogether writes ends in one transaction, by one statement where that
// is possible. errShort says that a lease is lost and nothing was written.
func (s *Store) settleTogether(ctx context.Context, ends []pendingSettlement, results []error, n *next) error {
	if x, ok := s.plainly(ends, n); ok {
		var settled []int64
		err := database.Retry(ctx, "settling jobs", func() (err error) { settled, err = s.finish(ctx, x); return err })
		if err == nil {
			return s.markLost(ctx, ends, settled, results)
		}
		if !errors.Is(err, errRefused) {
			return err
		}
		s.tables.Options.Logger.Debug("jobs are settled statement by statement", "event", "store.plain_settlement",
			"error", err)
	}
	return s.tables.InTx(ctx, "settling jobs", func(t tables.Transaction) error {
		if err := s.write(ctx, t, ends); err != nil {
			return err
		}
		return s.takeNext(ctx, t.Main, n)
	})
}

// markLost notes ends that were not settled.
func (s *Store) markLost(ctx context.Context, ends []pendingSettlement, settled []int64, results []error) error {
	if len(settled) == len(ends) {
		return nil
	}
	for _, e := range ends {
		if !slices.Contains(settled, e.Claimed.Lease.ID) {
			if err := s.lost(ctx, e, results); err != nil {
				return err
			}
		}
	}
	return nil
}

// chooseCompound notes how this server takes a plain settlement. A session of
// MySQL that needs its isolation level set for each transaction gets no packets.
func (s *Store) chooseCompound() {
	s.compound = s.tables.Dialect.CompoundOf(s.tables.Server)
	if p := database.PacketsOf(s.tables.DB); s.compound == database.OnePacket && p != nil && s.tables.TxOptions == nil {
		s.packets = p
	}
	s.oneStatement.Store(s.packets != nil || s.compound == database.WritableCTE || s.compound == database.Block)
}

// onMySQL writes a plain end as one packet. Its guard stops it, and so undoes
// it, where a lease is lost.
func (s *Store) onMySQL(ctx context.Context, x plainEnd) ([]int64, error) {
	drop, args := x.drop.statement(s.tables.Dialect)
	insertions, more := s.tables.FewInsertions(x.lines, "@ended")
	free, _ := s.tables.Dialect.RowsBy("job_id", x.drop.ids)
	statements := slices.Concat([]string{"START TRANSACTION", drop, database.Guard("@ended", s.tables.MillisNow(),
		len(x.drop.ids))},
		insertions, []string{"DELETE FROM cmsjobs_unique WHERE " + free})
	args = append(args, more...)
	taken := 0 // where the claim's answer is
	if x.next != nil {
		taking, more := s.taking(x.next)
		taken, statements, args = len(statements), append(statements, taking), append(args, more...)
		if n := len(x.next.rows); n > 1 { // all or none, as the count does not say which
			statements = append(statements, database.Guard("@claimed", "1", n))
		}
	}
	s.tables.Asked.Add(1)
	found, err := s.packets.Send(ctx, s.tables.DB, append(statements, "COMMIT"), args)
	if err != nil {
		return nil, s.unsent(err)
	}
	if taken > 0 && found[taken].Rows > 0 {
		x.next.wonAll()
	}
	return x.drop.ids, nil
}
