package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// tally is how many runs of an outcome the history holds, and their length.
type tally struct{ count, duration int64 } // duration is a sum in ms

// tallies counts the history by outcome. What was deleted of it, from its old
// end, is not counted: half hours count from the oldest run that is left.
func (s *Store) tallies(ctx context.Context) (map[string]tally, error) {
	until, err := s.bringFlows(ctx)
	if err != nil {
		return nil, err
	}
	oldest, err := s.oldestRuns(ctx, 0)
	if err != nil || len(oldest) == 0 {
		return nil, err
	}
	raw := func(outcome, condition string) string {
		return fmt.Sprintf("SELECT '%s', COUNT(*), SUM(duration_ms) FROM cmsjobs_runs%s WHERE outcome = '%s' AND %s",
			outcome, s.runsHint("outcome"), outcome, condition)
	}
	var indexScans []string
	for outcome, at := range oldest {
		whole := (at + flowWidth - 1) / flowWidth * flowWidth // the first half hour of which all runs are left
		if whole >= until {
			indexScans = append(indexScans, raw(outcome, fmt.Sprintf("ended_at >= %d", at)))
			continue
		}
		indexScans = append(indexScans, raw(outcome, fmt.Sprintf("ended_at < %d", whole)),
			raw(outcome, fmt.Sprintf("ended_at >= %d", until)),
			fmt.Sprintf("SELECT '%s', SUM(ended), SUM(duration_ms) FROM cmsjobs_throughput WHERE outcome = '%s' AND "+
				"at >= %d AND at < %d", outcome, outcome, whole, until))
	}
	found := map[string]tally{}
	err = s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var outcome string
		var n, sum sql.NullFloat64
		err := r.Scan(&outcome, &n, &sum)
		t := found[outcome]
		found[outcome] = tally{t.count + int64(n.Float64), t.duration + int64(sum.Float64)}
		return err
	}, strings.Join(indexScans, " UNION ALL "))
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
	if st.Ended = completed.count + counted[jobs.Failed.String()].count; st.Ended > 0 {
		st.SuccessRate = float64(completed.count) / float64(st.Ended)
	}
	if _, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&st.Failed}, "SELECT COUNT(*) FROM "+
		s.tables.Failed.Name); err != nil {
		return fmt.Errorf("counting %s: %w", s.tables.Failed.Name, err)
	}
	return nil
}

// tallied counts ended jobs by their states alone.
func (s *Store) tallied(ctx context.Context, f jobs.Filter) (n int64, err error) {
	counted, err := s.tallies(ctx)
	for state, outcome := range map[jobs.Status]string{jobs.StatusCompleted: jobs.Completed.String(),
		jobs.StatusCancelled: jobs.Cancelled.String()} {
		if len(f.Statuses) == 0 || slices.Contains(f.Statuses, state) {
			n += counted[outcome].count
		}
	}
	return n, err
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
