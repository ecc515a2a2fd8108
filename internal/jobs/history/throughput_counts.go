package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Half hours of the history are counted once, when they are over, and kept in
// cmsjobs_throughput: totals and plots then read a few hundred rows, not a million.
// What was not counted yet is read from the history itself, by its index.
const (
	flowWidth   = int64(30 * time.Minute / time.Millisecond)
	flowLate    = int64(5 * time.Minute / time.Millisecond) // for transactions that were slow to commit
	flowStretch = 48 * flowWidth                            // counted by one statement
	keepFlows   = int64(400 * 24 * time.Hour / time.Millisecond)
)

// outcomes are all that a run can end in.
var outcomes = []string{jobs.Completed.String(), jobs.Failed.String(), jobs.Retried.String(), jobs.Released.String(),
	jobs.Cancelled.String(), jobs.CrashedOutcome}

// bringFlows counts the half hours that are over, and says until when all are
// counted.
func (s *Store) bringFlows(ctx context.Context) (until int64, err error) {
	return s.bring(ctx, &s.throughput, "cmsjobs_throughput", s.countFlows)
}

// bring counts the half hours that are over into a table, and says until when all
// are counted. Several processes may do so at once: they count the same.
func (s *Store) bring(ctx context.Context, c *counted, table string,
	count func(ctx context.Context, from, to int64) error) (until int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var now int64
	var last sql.NullInt64
	if _, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&now, &last}, "SELECT "+s.tables.MillisNow()+
		", (SELECT MAX(at) FROM "+table+")"); err != nil {
		return 0, fmt.Errorf("reading what is counted of the history: %w", err)
	}
	over := (now - flowLate) / flowWidth * flowWidth
	from := c.until
	if last.Valid {
		from = max(from, last.Int64+flowWidth)
	}
	if from == 0 {
		if from, err = s.nextRun(ctx, 0, over); err != nil {
			return 0, err
		}
	}
	for from < over {
		if err := count(ctx, from, min(from+flowStretch, over)); err != nil {
			return 0, err
		}
		if from = min(from+flowStretch, over); from < over { // years without a run cost one look, not one a day
			if from, err = s.nextRun(ctx, from, over); err != nil {
				return 0, err
			}
		}
	}
	c.until = max(from, over)
	return c.until, nil
}

// countFlows counts a stretch of half hours and keeps it: all of it or nothing.
func (s *Store) countFlows(ctx context.Context, from, to int64) error {
	var values []string
	var args []any
	err := s.eachFlow(ctx, flowWidth, from, to, func(f flow) {
		values = append(values, fmt.Sprintf("(?,%d,%d,%d,%d)", f.at*flowWidth, f.ended, f.duration, f.wait))
		args = append(args, f.outcome)
	})
	if err != nil || len(values) == 0 {
		return err
	}
	if _, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_throughput",
		"outcome, at, ended, duration_ms, wait_ms", strings.Join(values, ",")), args...); err != nil {
		return fmt.Errorf("keeping what was counted of the history: %w", err)
	}
	return nil
}

// flow is what ended in one way in one step of time; at is the step's number.
type flow struct {
	outcome               string
	at                    int64
	ended, duration, wait int64
}

// eachFlow counts runs that ended in [from, to) by outcome and by steps of a
// width, all in Unix ms.
func (s *Store) eachFlow(ctx context.Context, width, from, to int64, each func(flow)) error {
	part, args := database.InWords("outcome", outcomes)
	return s.flowRows(ctx, each, fmt.Sprintf("SELECT outcome, CAST(%s AS %s) AS step, COUNT(*), SUM(duration_ms), "+
		"SUM(wait_ms) FROM cmsjobs_runs%s WHERE %s AND ended_at >= %d AND ended_at < %d GROUP BY outcome, 2",
		s.step("ended_at", width), s.wholeNumber(), s.runsHint("outcome"), part, from, to), args...)
}

// eachCounted is eachFlow out of what is counted. The width is a multiple of
// half an hour.
func (s *Store) eachCounted(ctx context.Context, width, from, to int64, each func(flow)) error {
	part, args := database.InWords("outcome", outcomes)
	return s.flowRows(ctx, each, fmt.Sprintf("SELECT outcome, CAST(%s AS %s) AS step, SUM(ended), SUM(duration_ms), "+
		"SUM(wait_ms) FROM cmsjobs_throughput WHERE %s AND at >= %d AND at < %d GROUP BY outcome, 2",
		s.step("at", width), s.wholeNumber(), part, from, to), args...)
}

func (s *Store) flowRows(ctx context.Context, each func(flow), statement string, args ...any) error {
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var f flow
		var ended, duration, wait float64
		if err := r.Scan(&f.outcome, &f.at, &ended, &duration, &wait); err != nil {
			return err
		}
		f.ended, f.duration, f.wait = int64(ended), int64(duration), int64(wait)
		each(f)
		return nil
	}, statement, args...)
	if err != nil {
		return fmt.Errorf("counting runs over time: %w", err)
	}
	return nil
}

// step is the number of the step of a width in which a column's moment lies.
func (s *Store) step(column string, width int64) string {
	exact := fmt.Sprintf("(%s - MOD(%s, %d)) / %d", column, column, width, width)
	return s.tables.Dialect.Choose(database.Variants{MySQL: exact, PostgreSQL: exact,
		SQLite: fmt.Sprintf("%s / %d", column, width)})
}

// wholeNumber is the type of a large integer in a CAST.
func (s *Store) wholeNumber() string {
	return s.tables.Dialect.Choose(database.Variants{MySQL: "SIGNED", PostgreSQL: "BIGINT", SQLite: "BIGINT"})
}

// nextRun is the half hour of the first run that ended at a time or later, in Unix ms; over
// where there is none before it.
func (s *Store) nextRun(ctx context.Context, from, over int64) (int64, error) {
	oldest, err := s.oldestRuns(ctx, from)
	next := over
	for _, at := range oldest {
		next = min(next, at/flowWidth*flowWidth)
	}
	return max(next, from), err
}

// oldestRuns is when the oldest run that is left ended, by outcome, at a time or later, in
// Unix ms.
func (s *Store) oldestRuns(ctx context.Context, from int64) (map[string]int64, error) {
	indexScans := make([]string, len(outcomes))
	for i, o := range outcomes {
		indexScans[i] = fmt.Sprintf(
			"SELECT '%s' AS outcome, MIN(ended_at) AS at FROM cmsjobs_runs WHERE outcome = '%s' AND ended_at >= %d",
			o, o, from)
	}
	oldest := map[string]int64{}
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var outcome string
		var at sql.NullInt64
		err := r.Scan(&outcome, &at)
		if at.Valid {
			oldest[outcome] = at.Int64
		}
		return err
	}, strings.Join(indexScans, " UNION ALL "))
	if err != nil {
		return nil, fmt.Errorf("reading how far the history goes back: %w", err)
	}
	return oldest, nil
}

// pruneFlows counts what is over, before the runs of it are deleted, and
// forgets what is very old.
func (s *Store) pruneFlows(ctx context.Context) error {
	_, err := s.bringFlows(ctx)
	_, old := s.tables.Exec(ctx, s.tables.OwnDB, fmt.Sprintf("DELETE FROM cmsjobs_throughput WHERE at < %s - %d",
		s.tables.MillisNow(), keepFlows))
	return errors.Join(err, old, s.pruneFigures(ctx))
}

// runsHint names the index of the history that serves a list by outcome, type,
// queue or uuid, newest first. Without it MariaDB sorts half of a million rows
// (1 s instead of 2 ms, measured), and SQLite may take the wrong one.
func (s *Store) runsHint(column string) string {
	index := "cmsjobs_runs_" + column
	return s.tables.Dialect.Choose(database.Variants{MySQL: " FORCE INDEX (" + index + ")", SQLite: " INDEXED BY " +
		index})
}
