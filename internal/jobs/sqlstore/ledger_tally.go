package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// tally is the history counted by outcome. Counting a million rows takes a
// second, and pages ask all the time: so only what came since is counted, by
// its number, until rows were removed (the lowest number tells).
type tally struct {
	mu          sync.Mutex
	first, last int64 // the lowest and highest number that was counted
	count       map[string]int64
	duration    map[string]float64 // sums, in ms
}

// tallyWhole is how many rows are always counted anew: with few rows that is
// quick, and right even where rows were committed out of order.
const tallyWhole = 20_000

// historyStats counts the history, and failed_jobs.
func (s *Store) historyStats(ctx context.Context, st *jobs.Stats) error {
	if err := s.bringTally(ctx); err != nil {
		return fmt.Errorf("counting the history: %w", err)
	}
	h := &s.history
	h.mu.Lock()
	completed, cancelled, failedRuns, sum := h.count[jobs.Completed.String()], h.count[jobs.Cancelled.String()], h.count[jobs.Buried.String()], h.duration[jobs.Completed.String()]
	h.mu.Unlock()
	st.Completed, st.Cancelled = completed, cancelled
	if completed > 0 {
		st.AverageDuration = milliseconds(sum / float64(completed))
	}
	if ended := completed + failedRuns; ended > 0 {
		st.SuccessRate = float64(completed) / float64(ended)
	}
	if _, err := s.one(ctx, s.db, []any{&st.Failed}, "SELECT COUNT(*) FROM "+s.failed.name); err != nil {
		return fmt.Errorf("counting %s: %w", s.failed.name, err)
	}
	return nil
}

// bringTally counts what is new in the history, or all of it.
func (s *Store) bringTally(ctx context.Context) error {
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	var first, last sql.NullInt64
	if _, err := s.one(ctx, s.ownDB, []any{&first, &last}, "SELECT (SELECT MIN(id) FROM cmsjobs_runs), (SELECT MAX(id) FROM cmsjobs_runs)"); err != nil {
		return err
	}
	if h.count == nil || first.Int64 != h.first || last.Int64 < h.last || last.Int64-first.Int64 < tallyWhole {
		h.count, h.duration, h.last = map[string]int64{}, map[string]float64{}, 0
	}
	if last.Int64 == h.last {
		return nil
	}
	err := s.query(ctx, s.ownDB, func(r *sql.Rows) error {
		var outcome string
		var n int64
		var sum float64
		if err := r.Scan(&outcome, &n, &sum); err != nil {
			return err
		}
		h.count[outcome] += n
		h.duration[outcome] += sum
		return nil
	}, fmt.Sprintf("SELECT outcome, COUNT(*), SUM(duration_ms) FROM cmsjobs_runs WHERE id > %d AND id <= %d GROUP BY outcome", h.last, last.Int64))
	if err != nil {
		h.count = nil // counted in part: begin anew
		return err
	}
	h.first, h.last = first.Int64, last.Int64
	return nil
}

// tallied counts ended jobs by their states alone.
func (s *Store) tallied(ctx context.Context, f jobs.Filter) (n int64, err error) {
	if err := s.bringTally(ctx); err != nil {
		return 0, fmt.Errorf("counting the history: %w", err)
	}
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for state, outcome := range map[jobs.State]string{jobs.StateCompleted: jobs.Completed.String(), jobs.StateCancelled: jobs.Cancelled.String()} {
		if len(f.States) == 0 || slices.Contains(f.States, state) {
			n += h.count[outcome]
		}
	}
	return n, nil
}
