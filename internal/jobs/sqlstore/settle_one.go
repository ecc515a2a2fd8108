package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// A worker with one slot settles one job at a time, and then the round trips
// are what it costs: BEGIN, DELETE, two questions, INSERT, COMMIT. MariaDB and
// PostgreSQL take all of it as one statement, which does the same in the same
// order: without the lease nothing is written.

// plain says that ends is one job that is done and leaves nothing but a line of
// history: what one statement can write.
func (s *Store) plain(ends []ending) bool {
	if len(ends) != 1 || s.ownDB != s.db || !s.oneStatement.Load() {
		return false
	}
	e := ends[0]
	entry, known := s.o.Registry.Lookup(e.Claimed.Job.Kind)
	return known && entry.Policy.Limit == 0 && e.Verdict == jobs.Completed && len(e.Claimed.Twins)+len(e.FollowUps)+len(e.Lines) == 0
}

// takesOneStatement says whether this server is known to.
func (s *Store) takesOneStatement() bool {
	return s.d.name == "postgres" || s.d.name == "mysql" && strings.Contains(s.server, "MariaDB")
}

// finish is write for a plain end. Where something between us and the server
// refuses the statement, it is not tried again.
func (s *Store) finish(ctx context.Context, e ending) error {
	l := e.Claimed.Lease
	cond, more := s.t.guard(l, s.triedRenewal(l.ID))
	drop := fmt.Sprintf("DELETE FROM %s WHERE id = %d AND %s", s.t.shape().name, l.ID, cond)
	values, args := s.lineOf(runOf(e)).values(s.millis())
	args = slices.Concat(more, args)
	var n int64
	var err error
	if s.d.name == "postgres" {
		n, err = s.exec(ctx, s.db, "WITH gone AS ("+drop+" RETURNING id), freed AS (DELETE FROM cmsjobs_unique WHERE job_id IN (SELECT id FROM gone)) "+
			"INSERT INTO cmsjobs_runs ("+runColumns+") SELECT "+values+" FROM gone", args...)
	} else {
		_, err = s.one(ctx, s.db, []any{&n}, "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START TRANSACTION; "+
			drop+"; IF ROW_COUNT() = 1 THEN INSERT INTO cmsjobs_runs ("+runColumns+") VALUES ("+values+
			fmt.Sprintf("); DELETE FROM cmsjobs_unique WHERE job_id = %d; COMMIT; SELECT 1; ELSE ROLLBACK; SELECT 0; END IF; END", l.ID), args...)
	}
	if err == nil && n != 1 {
		return errShort
	}
	if Classify(err) == Other {
		s.oneStatement.Store(false)
		return errors.Join(errRefused, err)
	}
	return err
}

// errRefused says that the statement was not understood and did nothing.
var errRefused = errors.New("the server does not take this as one statement")

// settleTogether writes ends in one transaction, by one statement where that
// is possible.
func (s *Store) settleTogether(ctx context.Context, ends []ending) error {
	if s.plain(ends) {
		err := s.repeated(ctx, "settling a job", func() error { return s.finish(ctx, ends[0]) })
		if !errors.Is(err, errRefused) {
			return err
		}
		s.o.Logger.Debug("jobs are settled statement by statement", "error", err)
	}
	return s.inTx(ctx, "settling jobs", func(t tx) error { return s.write(ctx, t, ends) })
}
