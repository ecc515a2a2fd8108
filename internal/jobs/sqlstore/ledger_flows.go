package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Half hours of the history are counted once, when they are over, and kept in
// cmsjobs_flows: totals and plots then read a few hundred rows, not a million.
// What was not counted yet is read from the history itself, by its index.
const (
	flowWidth   = int64(30 * time.Minute / time.Millisecond)
	flowLate    = int64(5 * time.Minute / time.Millisecond) // for transactions that were slow to commit
	flowStretch = 48 * flowWidth                            // counted by one statement
	keepFlows   = int64(400 * 24 * time.Hour / time.Millisecond)
)

// outcomes are all that a run can end in.
var outcomes = []string{jobs.Completed.String(), jobs.Buried.String(), jobs.Retried.String(), jobs.Released.String(), jobs.Cancelled.String(), "crashed"}

// flowsTo is until when this process found everything counted.
type flowsTo struct {
	mu    sync.Mutex
	until int64 // Unix ms
}

// bringFlows counts the half hours that are over, and says until when all are
// counted. Several processes may do so at once: they count the same.
func (s *Store) bringFlows(ctx context.Context) (until int64, err error) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	var now int64
	var last sql.NullInt64
	if _, err := s.one(ctx, s.ownDB, []any{&now, &last}, "SELECT "+s.millis()+", (SELECT MAX(at) FROM cmsjobs_flows)"); err != nil {
		return 0, fmt.Errorf("reading what is counted of the history: %w", err)
	}
	over := (now - flowLate) / flowWidth * flowWidth
	from := s.flows.until
	if last.Valid {
		from = max(from, last.Int64+flowWidth)
	}
	if from == 0 {
		oldest, err := s.oldestRuns(ctx)
		if err != nil {
			return 0, err
		}
		from = over
		for _, at := range oldest {
			from = min(from, at/flowWidth*flowWidth)
		}
	}
	for ; from < over; from = min(from+flowStretch, over) {
		if err := s.countFlows(ctx, from, min(from+flowStretch, over)); err != nil {
			return 0, err
		}
	}
	s.flows.until = max(from, over)
	return s.flows.until, nil
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
	if _, err := s.exec(ctx, s.ownDB, s.d.insertOrSkip("cmsjobs_flows", "outcome, at, ended, duration_ms, wait_ms", strings.Join(values, ","), "outcome, at"), args...); err != nil {
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
	part, args := inWords("outcome", outcomes)
	return s.flowRows(ctx, each, fmt.Sprintf("SELECT outcome, CAST(%s AS %s) AS step, COUNT(*), SUM(duration_ms), SUM(wait_ms) FROM cmsjobs_runs%s WHERE %s AND ended_at >= %d AND ended_at < %d GROUP BY outcome, 2",
		s.step("ended_at", width), s.wholeNumber(), s.runsHint("outcome"), part, from, to), args...)
}

// eachCounted is eachFlow out of what is counted. The width is a multiple of
// half an hour.
func (s *Store) eachCounted(ctx context.Context, width, from, to int64, each func(flow)) error {
	part, args := inWords("outcome", outcomes)
	return s.flowRows(ctx, each, fmt.Sprintf("SELECT outcome, CAST(%s AS %s) AS step, SUM(ended), SUM(duration_ms), SUM(wait_ms) FROM cmsjobs_flows WHERE %s AND at >= %d AND at < %d GROUP BY outcome, 2",
		s.step("at", width), s.wholeNumber(), part, from, to), args...)
}

func (s *Store) flowRows(ctx context.Context, each func(flow), statement string, args ...any) error {
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
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
	if s.d.name == "sqlite" {
		return fmt.Sprintf("%s / %d", column, width)
	}
	return fmt.Sprintf("(%s - MOD(%s, %d)) / %d", column, column, width, width)
}

// wholeNumber is the type of a large integer in a CAST.
func (s *Store) wholeNumber() string {
	if s.d.name == "mysql" {
		return "SIGNED"
	}
	return "BIGINT"
}

// oldestRuns is when the oldest run that is left ended, by outcome, in Unix ms.
func (s *Store) oldestRuns(ctx context.Context) (map[string]int64, error) {
	legs := make([]string, len(outcomes))
	for i, o := range outcomes {
		legs[i] = fmt.Sprintf("SELECT '%s' AS outcome, MIN(ended_at) AS at FROM cmsjobs_runs WHERE outcome = '%s'", o, o)
	}
	oldest := map[string]int64{}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var outcome string
		var at sql.NullInt64
		err := r.Scan(&outcome, &at)
		if at.Valid {
			oldest[outcome] = at.Int64
		}
		return err
	}, strings.Join(legs, " UNION ALL "))
	if err != nil {
		return nil, fmt.Errorf("reading how far the history goes back: %w", err)
	}
	return oldest, nil
}

// tally is how many runs of an outcome the history holds, and their length.
type tally struct{ count, duration int64 } // duration is a sum in ms

// tallies counts the history by outcome. What was deleted of it, from its old
// end, is not counted: half hours count from the oldest run that is left.
func (s *Store) tallies(ctx context.Context) (map[string]tally, error) {
	until, err := s.bringFlows(ctx)
	if err != nil {
		return nil, err
	}
	oldest, err := s.oldestRuns(ctx)
	if err != nil || len(oldest) == 0 {
		return nil, err
	}
	raw := func(outcome, condition string) string {
		return fmt.Sprintf("SELECT '%s', COUNT(*), SUM(duration_ms) FROM cmsjobs_runs%s WHERE outcome = '%s' AND %s", outcome, s.runsHint("outcome"), outcome, condition)
	}
	var legs []string
	for outcome, at := range oldest {
		whole := (at + flowWidth - 1) / flowWidth * flowWidth // the first half hour of which all runs are left
		if whole >= until {
			legs = append(legs, raw(outcome, fmt.Sprintf("ended_at >= %d", at)))
			continue
		}
		legs = append(legs, raw(outcome, fmt.Sprintf("ended_at < %d", whole)), raw(outcome, fmt.Sprintf("ended_at >= %d", until)),
			fmt.Sprintf("SELECT '%s', SUM(ended), SUM(duration_ms) FROM cmsjobs_flows WHERE outcome = '%s' AND at >= %d AND at < %d", outcome, outcome, whole, until))
	}
	found := map[string]tally{}
	err = s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var outcome string
		var n, sum sql.NullFloat64
		err := r.Scan(&outcome, &n, &sum)
		t := found[outcome]
		found[outcome] = tally{t.count + int64(n.Float64), t.duration + int64(sum.Float64)}
		return err
	}, strings.Join(legs, " UNION ALL "))
	if err != nil {
		return nil, fmt.Errorf("counting the history: %w", err)
	}
	return found, nil
}

// historyStats counts the history, and failed_jobs.
func (s *Store) historyStats(ctx context.Context, st *jobs.Stats) error {
	counted, err := s.tallies(ctx)
	if err != nil {
		return err
	}
	completed := counted[jobs.Completed.String()]
	st.Completed, st.Cancelled = completed.count, counted[jobs.Cancelled.String()].count
	if completed.count > 0 {
		st.AverageDuration = milliseconds(float64(completed.duration) / float64(completed.count))
	}
	if ended := completed.count + counted[jobs.Buried.String()].count; ended > 0 {
		st.SuccessRate = float64(completed.count) / float64(ended)
	}
	if _, err := s.one(ctx, s.db, []any{&st.Failed}, "SELECT COUNT(*) FROM "+s.failed.name); err != nil {
		return fmt.Errorf("counting %s: %w", s.failed.name, err)
	}
	return nil
}

// tallied counts ended jobs by their states alone.
func (s *Store) tallied(ctx context.Context, f jobs.Filter) (n int64, err error) {
	counted, err := s.tallies(ctx)
	for state, outcome := range map[jobs.State]string{jobs.StateCompleted: jobs.Completed.String(), jobs.StateCancelled: jobs.Cancelled.String()} {
		if len(f.States) == 0 || slices.Contains(f.States, state) {
			n += counted[outcome].count
		}
	}
	return n, err
}

// Throughput counts ended runs in steps of equal length since a moment, oldest
// first. Steps without runs are listed with zeros. Steps of half hours or a
// multiple reach back further than the history: to 400 days.
func (s *Store) Throughput(ctx context.Context, since time.Time, step time.Duration) ([]jobs.Flow, error) {
	if step < time.Second {
		return nil, fmt.Errorf("a step of %s is too short: at least 1s", step)
	}
	var now int64
	if _, err := s.one(ctx, s.ownDB, []any{&now}, "SELECT "+s.millis()); err != nil {
		return nil, fmt.Errorf("asking the database for the time: %w", err)
	}
	width := step.Milliseconds()
	first := since.UnixMilli() / width
	count := now/width - first + 1
	if count < 1 {
		return nil, nil
	}
	if count > 10_000 {
		return nil, fmt.Errorf("%d steps are too many: take longer ones", count)
	}
	sums := make([]sums, count)
	add := func(f flow) {
		if i := f.at - first; i >= 0 && i < count {
			sums[i].add(f)
		}
	}
	from, end := first*width, now+width
	if width%flowWidth == 0 {
		until, err := s.bringFlows(ctx)
		if err == nil && until > from {
			err = s.eachCounted(ctx, width, from, until, add)
		}
		if err != nil {
			return nil, err
		}
		from = max(from, until)
	}
	if err := s.eachFlow(ctx, width, from, end, add); err != nil {
		return nil, err
	}
	flows := make([]jobs.Flow, count)
	for i, x := range sums {
		flows[i] = x.flow(unixMilli((first + int64(i)) * width))
	}
	return flows, nil
}

// sums are what ended in one step, in whichever way.
type sums struct{ completed, failed, ended, duration, wait int64 }

func (x *sums) add(f flow) {
	switch f.outcome {
	case jobs.Completed.String():
		x.completed += f.ended
	case jobs.Buried.String(), jobs.Retried.String(), "crashed":
		x.failed += f.ended
	}
	x.ended, x.duration, x.wait = x.ended+f.ended, x.duration+f.duration, x.wait+f.wait
}

func (x sums) flow(at time.Time) jobs.Flow {
	n := max(x.ended, 1)
	return jobs.Flow{At: at, Completed: x.completed, Failed: x.failed, Duration: time.Duration(x.duration/n) * time.Millisecond, Wait: time.Duration(x.wait/n) * time.Millisecond}
}

// pruneFlows counts what is over, before the runs of it are deleted, and
// forgets what is very old.
func (s *Store) pruneFlows(ctx context.Context) error {
	_, err := s.bringFlows(ctx)
	_, old := s.exec(ctx, s.ownDB, fmt.Sprintf("DELETE FROM cmsjobs_flows WHERE at < %s - %d", s.millis(), keepFlows))
	return errors.Join(err, old)
}
